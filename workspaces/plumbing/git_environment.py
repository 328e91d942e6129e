"""The environment and configuration that every git command gets: made from nothing, whatever the server's is."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings

from workspaces.plumbing.presentable import secrets_of_url

_PROXIES = tuple(
    name
    for which in ("HTTP", "HTTPS", "ALL")
    for name in (f"{which}_PROXY", f"{which}_proxy".lower())
)
# An operator's, and needed to reach remotes; an agent cannot change the server's environment.
_PASSED_ON = ("PATH", "SSH_AUTH_SOCK", *_PROXIES, "NO_PROXY", "no_proxy")
_SSH = (
    "ssh -oBatchMode=yes -oStrictHostKeyChecking=yes -oConnectTimeout=15"
    " -oServerAliveInterval=15 -oServerAliveCountMax=2"
)
_ENVIRONMENT = {
    # No directory: nothing of the service account's own (.netrc, .gitconfig) is read.
    "HOME": os.devnull,
    "XDG_CONFIG_HOME": os.devnull,
    # LANGUAGE beats LC_ALL where it is set.
    "LC_ALL": "C",
    "LANGUAGE": "C",
    "TZ": "UTC",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    # Answers every question for a credential with nothing, so that it fails at once.
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "SSH_ASKPASS_REQUIRE": "force",
    "GIT_SSH_COMMAND": _SSH,
    "GIT_SSH_VARIANT": "ssh",
    "GIT_OPTIONAL_LOCKS": "0",
    # Beats core.gitProxy, a command.
    "GIT_PROXY_COMMAND": "",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_NO_LAZY_FETCH": "1",
}
_CONFIGURATION = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.alternateRefsCommand": "true",
    "core.attributesFile": os.devnull,
    "core.quotePath": "false",
    "credential.helper": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "commit.gpgSign": "false",
    "log.showSignature": "false",
    # Nor a file that a repository's configuration names, which may be a pipe.
    "log.mailmap": "false",
    "core.excludesFile": os.devnull,
    "i18n.logOutputEncoding": "UTF-8",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "protocol.ext.allow": "never",
    "http.sslVerify": "true",
    "http.saveCookies": "false",
    # Below 1,000 bytes a second for 30 seconds, a transfer has died.
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
    "advice.detachedHead": "false",
    "init.defaultBranch": "main",
}


def build(
    directories: Sequence[Path],
    *,
    config: Mapping[str, str],
    common: Path | None = None,
    objects: Path | None = None,
    protocols: Sequence[str] | None = None,
    configured: bool = False,
) -> dict[str, str]:
    """The whole environment of a git command that works on these ``directories``.

    ``config`` adds configuration; it goes this way, since any key can. ``common`` is the repository of the worktree that the
    command works on instead of the one that it names. ``objects`` is where objects are
    read and written instead of the repository's own place; ``protocols`` are those that are allowed
    instead of ``ACW_GIT_PROTOCOLS``. ``configured``: the repository is ours, and has :func:`as_file` in its configuration.
    """
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= _ENVIRONMENT
    given = {} if configured else _CONFIGURATION
    allowed = settings.ACW_GIT_PROTOCOLS if protocols is None else protocols
    environment["GIT_ALLOW_PROTOCOL"] = ":".join(allowed)
    if common is not None:
        environment["GIT_COMMON_DIR"] = str(common)
    if objects is not None:
        environment["GIT_OBJECT_DIRECTORY"] = str(objects)
    # Exactly these directories may belong to another user, never all ("*").
    pairs = [
        *given.items(),
        *config.items(),
        *(("safe.directory", str(directory)) for directory in directories),
    ]
    for n, (key, value) in enumerate(pairs):
        environment[f"GIT_CONFIG_KEY_{n}"] = key
        environment[f"GIT_CONFIG_VALUE_{n}"] = value
    environment["GIT_CONFIG_COUNT"] = str(len(pairs))
    return environment


def as_file(more: Mapping[str, str]) -> bytes:
    """The same configuration, and ``more``, as the text of a file: git reads it faster than from its environment."""
    lines = []
    for key, value in {**_CONFIGURATION, **more}.items():
        section, *middle, name = key.split(".")
        named = "".join(f' "{part}"' for part in middle)
        lines.append(f"[{section}{named}]\n\t{name} = {value}\n")
    return "".join(lines).encode()


def secrets() -> frozenset[str]:
    """What git is told and nobody is to read: the passwords of the server's proxies, in every spelling."""
    return _secrets_of(tuple(os.environ.get(name, "") for name in _PROXIES))


@functools.lru_cache(maxsize=8)
def _secrets_of(proxies: tuple[str, ...]) -> frozenset[str]:
    return frozenset().union(*(secrets_of_url(proxy) for proxy in proxies))
