"""Which remotes a workspace may have: a URL is taken apart and refused unless every part is known good.

Git itself would run programs that some URLs name (``ext::``, ``--upload-pack=``), so nothing is
passed on that is not one of the accepted forms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from django.conf import settings

from workspaces.exceptions import RefusedUrl

URL_MAX_LENGTH = 2000
ACCEPTED = (
    "https://host/path, ssh://user@host/path, user@host:path"
    " or, where ACW_GIT_PROTOCOLS has file, /absolute/path"
)

PATHS = "^(/|[Ff][Ii][Ll][Ee]:)"
"""Of URLs that are paths on this host, as a regular expression that PostgreSQL has too."""

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,15}(?=://)", re.IGNORECASE)
_HELPER = re.compile(r"[A-Za-z0-9+.-]{0,50}::")
_SCP = re.compile(r"(?:(?P<user>[^/:@]{1,100})@)?(?P<host>[^/:@]{1,255}):(?P<path>.+)")
# "user:password@host", from which the scheme or one of its slashes was left out.
_LOGIN_IN_PATH = re.compile(r"(?:^|/)[^/@]*:[^/@]*@")
_NO_HOST = {"http", "https", "ssh", "git", "ftp", "file"}
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
_HOST = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\]"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Remote:
    """A remote that was found acceptable: ``url`` as git is given it, ``protocol`` as git names it."""

    url: str
    protocol: str


def parse(url: str) -> Remote:
    """Return the remote of this URL.

    Raises :class:`~workspaces.exceptions.RefusedUrl` for every other form, for a protocol
    that ``ACW_GIT_PROTOCOLS`` has not, and for a URL that carries a password or token: the text
    never quotes those.
    """
    if not url:
        raise RefusedUrl(f"the URL is empty; give {ACCEPTED}")
    if len(url) > URL_MAX_LENGTH:
        raise RefusedUrl(
            f"the URL has {len(url)} characters, at most {URL_MAX_LENGTH} are accepted"
        )
    if url.startswith("-"):
        raise RefusedUrl(f"the URL begins with '-', as options do; give {ACCEPTED}")
    if url != url.strip() or any(
        not char.isprintable() or char == "\\" for char in unquote(url)
    ):
        raise RefusedUrl(
            "the URL has a control character or a backslash in it, plain or as %XX, "
            "or blanks around it; remove them"
        )
    if _HELPER.match(url):
        raise RefusedUrl(
            "the URL names a remote helper (…::), which could run programs; give "
            + ACCEPTED
        )
    remote = _path(url) or _with_scheme(url) or _scp(url)
    if remote is not None:
        _refuse_login(url)
    if remote is None:
        raise RefusedUrl(f"the URL has none of the accepted forms; give {ACCEPTED}")
    if remote.protocol not in settings.ACW_GIT_PROTOCOLS:
        accepted = ", ".join(settings.ACW_GIT_PROTOCOLS) or "none"
        raise RefusedUrl(
            f"protocol {remote.protocol!r} is not allowed here; ACW_GIT_PROTOCOLS allows: {accepted}"
        )
    return remote


def is_path(url: str) -> bool:
    """Whether the URL is a path on this host, as :data:`PATHS` says to the database."""
    return re.match(PATHS, url) is not None


def host_of(url: str) -> str:
    """The host, with its port, that the URL leads to; "" for a path, and for what :func:`parse` refuses."""
    if _SCHEME.match(url):
        return urlsplit(url).netloc.rpartition("@")[2].lower()
    scp = _SCP.fullmatch(url)
    return scp["host"].lower() if scp and not url.startswith("/") else ""


def _path(url: str) -> Remote | None:
    return Remote(url=url, protocol="file") if url.startswith("/") else None


def _with_scheme(url: str) -> Remote | None:
    scheme = _SCHEME.match(url)
    if scheme is None:
        return None
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises ValueError where it is no number)
    except ValueError as error:
        raise RefusedUrl(f"the URL cannot be read: {_without_url(error)}") from None
    if "?" in url or "#" in url:
        raise RefusedUrl(
            "the URL has a query or fragment, which git does not use; leave it out"
        )
    if parts.path in ("", "/"):
        raise RefusedUrl("the URL has no path; it must name a repository on the host")
    protocol = scheme[0].lower()
    if protocol == "file":
        if parts.netloc:
            raise RefusedUrl("a file URL has no host: write file:///absolute/path")
    else:
        if " " in url:
            raise RefusedUrl("the URL has a blank in it; write it as %20")
        _refuse_credentials(parts, protocol)
        if not _HOST.fullmatch(_host(parts)):
            raise RefusedUrl(
                "the URL's host is missing or has characters that no host has"
            )
    return Remote(url=url, protocol=protocol)


def _scp(url: str) -> Remote | None:
    match = _SCP.fullmatch(url)
    if (
        match is None
        or not _HOST.fullmatch(match["host"])
        or match["path"].startswith("-")
    ):
        return None
    if match["user"] is not None and not _USER.fullmatch(match["user"]):
        return None
    return Remote(url=url, protocol="ssh")


def _refuse_credentials(parts: SplitResult, protocol: str) -> None:
    userinfo, at, _ = parts.netloc.rpartition("@")
    if not at:
        return
    if protocol != "ssh":
        # Without a password the user may be an access token.
        raise RefusedUrl(
            f"the {protocol} URL carries a user, password or token, which would be stored and shown; "
            "leave it out, and for a private repository use ssh with a key of the service account"
        )
    if ":" in userinfo:
        raise RefusedUrl(
            "the ssh URL carries a password, which ssh does not take; "
            "leave it out and use a key of the service account"
        )
    if not _USER.fullmatch(userinfo):
        raise RefusedUrl("the URL's user has characters that no user has")


def _refuse_login(url: str) -> None:
    """What stands in a path is no login to git; where it was meant for one, it would be stored and shown."""
    scp = None
    if _SCHEME.match(url):
        path = url.partition("://")[2].partition("/")[2]
    elif url.startswith("/"):
        path = url
    else:
        scp = _SCP.fullmatch(url)
        path = scp["path"] if scp else ""
    if _LOGIN_IN_PATH.search(path) or (
        scp is not None
        and (scp["host"].lower() in _NO_HOST or "@" in path.partition("/")[0])
    ):
        raise RefusedUrl(
            "the URL has what may be a user, password or token where git takes it for a path; "
            f"leave it out, and give {ACCEPTED}"
        )


def _host(parts: SplitResult) -> str:
    """The host with the brackets of an IPv6 address, which ``parts.hostname`` takes away."""
    address = parts.netloc.rpartition("@")[2]
    return re.sub(r":[0-9]{0,5}$", "", address)


def _without_url(error: ValueError) -> str:
    """urllib's reason without what it quotes."""
    return str(error).partition(":")[0].partition("'")[0].strip()
