"""What a remote's refusal depends on, as one value: while it is the same, asking again is pointless."""

from __future__ import annotations

import hashlib
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from workspaces import remotes
from workspaces.models import Workspace

_VARIABLES = (
    "SSH_AUTH_SOCK",
    *(f"{name}_PROXY" for name in ("HTTP", "HTTPS", "ALL", "NO")),
    *(f"{name}_proxy" for name in ("http", "https", "all", "no")),
)
_SYSTEM = Path("/etc/ssh")
# Where git looks for the repository of a path, and what makes one.
_REPOSITORIES = ("", ".git", "/.git")
_PARTS = ("HEAD", "config", "objects", "refs", "shallow")
_MOST_FILES = 1000


def of(workspace: Workspace) -> str:
    """Of the workspace's URL, this host's keys and known hosts, what is allowed, and where its clone is."""
    digest = hashlib.sha256()
    for part in _parts(workspace):
        digest.update(f"{len(part)}:{part}".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _parts(workspace: Workspace) -> Iterator[str]:
    url = workspace.url
    yield url
    yield ",".join(settings.ACW_GIT_PROTOCOLS)
    yield str(settings.ACW_GIT_MAX_FILE)
    yield str(settings.ACW_DATA_DIR)
    yield f"clone {_seen(Path(workspace.path))}"
    for name in _VARIABLES:
        yield f"{name}={os.environ.get(name)}"
    if remotes.host_of(url):
        for directory in (_home() / ".ssh", _SYSTEM):
            yield from _files(directory)
        yield f"agent {_seen(Path(os.environ.get('SSH_AUTH_SOCK') or '-'))}"
    else:
        path = url.removeprefix("file://")
        for repository in _REPOSITORIES:
            yield f"remote {_seen(Path(path + repository))}"
            for part in _PARTS:
                yield f"{part} {_seen(Path(path + repository, part))}"


def _home() -> Path:
    """Where ssh looks, whatever HOME says."""
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:  # a user id without a name, as containers have
        return Path("/")


def _files(directory: Path) -> Iterator[str]:
    try:
        names = sorted(os.listdir(directory))[:_MOST_FILES]
    except OSError:
        yield f"{directory} -"
        return
    for name in names:
        yield f"{directory / name} {_seen(directory / name)}"


def _seen(path: Path) -> str:
    """Changes when the file is written, replaced, made or removed, or somebody else's. Of a directory, only when it is another one."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return "-"
    times = "" if path.is_dir() else f" {found.st_mtime_ns} {found.st_size}"
    owner = f"{found.st_uid} {found.st_gid}"
    return f"{found.st_dev} {found.st_ino} {found.st_mode} {owner}{times}"
