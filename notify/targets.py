"""The rules for a receiver's URL, and how one is shown. Pure: no name is looked up here.

A URL is a credential: the path of many a receiver is all that keeps strangers from posting there. What is
logged, stored or shown is therefore :attr:`Target.label`, never the URL.
"""

from __future__ import annotations

import functools
import hashlib
import ipaddress
import re
from dataclasses import dataclass, replace
from urllib.parse import quote, urljoin, urlsplit

import idna

from notify.exceptions import InvalidUrl

MAX_LENGTH = 2_000

_MALFORMED = "the URL cannot be read: its host or port is malformed"
# Printable ASCII but the space and what RFC 3986 leaves out and parsers disagree about.
_CHARACTERS = re.compile(r"[!#-;=?-\[\]-~]*")
_DELIMITERS = "/?:@!$&'()*+,;=%"
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
# A name, or an address of IPv6 in brackets, and nothing between that and the port.
_AUTHORITY = re.compile(r"(?:\[[^\[\]]*:[^\[\]]*\]|[^\[\]:]*)(?::[0-9]*)?")
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A URL that keeps to the rules. ``port`` None is the scheme's own."""

    url: str
    scheme: str
    host: str
    port: int | None

    @property
    def origin(self) -> str:
        """``https://host[:port]``, with nothing in it that could be a secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (f":{self.port}" if self.port else "")

    @property
    def authority(self) -> str:
        """``host[:port]`` as the Host header has it: without the port where it is the scheme's own."""
        host = self.host.rstrip(".")
        host = f"[{host}]" if ":" in host else host
        own = {"http": 80, "https": 443}[self.scheme]
        return host if self.port in (None, own) else f"{host}:{self.port}"

    @property
    def label(self) -> str:
        """The origin, and eight digits of the URL's SHA-256 that tell two URLs at one host apart."""
        return f"{self.origin} #{hashlib.sha256(self.url.encode()).hexdigest()[:8]}"

    def __repr__(self) -> str:
        return f"<Target {self.label}>"


@functools.lru_cache(maxsize=128)
def parse(url: str) -> Target:
    """Check ``url`` and return it in the form in which it is used: the host in lower case and as A-labels, the rest as it is.

    Raises :class:`~notify.exceptions.InvalidUrl`, which names the rule and never quotes the URL.
    """
    url = url.strip()
    # Before anything else: urlsplit silently drops line ends and tabs.
    if any(character.isspace() or not character.isprintable() for character in url):
        raise InvalidUrl("the URL must not hold spaces or control characters")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidUrl(_MALFORMED) from None
    if parts.scheme not in ("https", "http"):
        raise InvalidUrl("the URL must begin with https:// or http://")
    if "@" in parts.netloc:
        raise InvalidUrl(
            "the URL must not hold a user name or password before the host"
        )
    if not _AUTHORITY.fullmatch(parts.netloc):
        raise InvalidUrl(_MALFORMED)
    if "#" in url:
        raise InvalidUrl(
            "the URL must not have a fragment (#…): it would never be sent"
        )
    if port == 0:
        raise InvalidUrl("the URL's port must be between 1 and 65535")
    target = Target(url="", scheme=parts.scheme, host=_checked_host(host), port=port)
    url = target.origin + _checked_rest(
        parts.path + (f"?{parts.query}" if parts.query else "")
    )
    if len(url) > MAX_LENGTH:
        raise InvalidUrl(f"the URL is longer than {MAX_LENGTH:,} characters")
    return replace(target, url=url)


def redirect_target(location: str, base: Target) -> str:
    """The scheme and host that a ``Location`` header names, in words that can be shown."""
    try:
        to = urlsplit(urljoin(base.url, location))
        return parse(f"{to.scheme}://{to.netloc}").origin
    except (InvalidUrl, ValueError):
        return "an address that cannot be read"


def _checked_rest(rest: str) -> str:
    """Path and query as they are sent."""
    if not _CHARACTERS.fullmatch(rest):
        raise InvalidUrl(
            "after its host the URL must be printable ASCII without quotes, <, > and backslashes; "
            "percent-encode other characters"
        )
    if _LONE_PERCENT.search(rest):
        raise InvalidUrl(
            "a % in the URL must stand before two hexadecimal digits; by itself it is written %25"
        )
    # Some servers refuse a head in which these stand: {|}[]^`
    return quote(rest, safe=_DELIMITERS)


def _checked_host(host: str) -> str:
    if not host:
        raise InvalidUrl("the URL must name a host")
    if ":" in host:
        try:
            # A zone (%eth0) names one of this host's own interfaces.
            return str(ipaddress.IPv6Address("" if "%" in host else host))
        except ValueError:
            raise InvalidUrl("the URL's host is not a valid IPv6 address") from None
    if not host.isascii():
        try:
            host = idna.encode(host, uts46=True).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            raise InvalidUrl(
                "the URL's host is not a valid international name"
            ) from None
    if not _HOST.fullmatch(host):
        raise InvalidUrl(
            "the URL's host must be labels of a-z, 0-9, - and _ joined by dots, each of at most 63"
        )
    return host
