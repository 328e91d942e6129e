"""What agents have written into a clone's configuration that could run a command, or lead git elsewhere.

Read as bytes first and judged from those, so that nothing can be changed in between. Most configurations are as plain
as git makes them, and are known for that without a process.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from pathlib import Path

from workspaces import git
from workspaces.exceptions import GitFailed
from workspaces.plumbing import clone_files, presentable

_MOST = 1024 * 1024
_MOST_WORKTREES = 10_000
_MOST_FOUND = 50
# Each of these costs a process of git.
_MOST_READ = 200
_CACHED_MOST = 16 * 1024

# A value without quotes and backslashes ends with its line, so that each line means what it means alone.
_VALUE = rb"[ \t]*=[^\"\\\x00-\x1f\x7f]*\n"
_CORE = (
    rb"(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase"
    rb"|symlinks|precomposeunicode|autocrlf|quotepath|abbrev)"
)
_GC = (
    rb"(?:auto|autopacklimit|autodetach|packrefs|(?:prune|worktreeprune|reflog)expire)"
)
_PLAIN = re.compile(
    rb"(?i:"
    rb"[ \t]*\n"
    rb"|\[core\]\n(?:[ \t]*%(core)b%(value)b)*"
    rb"|\[gc\]\n(?:[ \t]*%(gc)b%(value)b)*"
    rb"|\[(?:user|push|pull|rebase|color|init|commit|advice|branch \"[^\"\\\]\x00-\x1f\x7f]*\")\]\n"
    rb"(?:[ \t]*[a-z][a-z0-9-]*%(value)b)*"
    rb"|\[remote \"[^\"\\\]\x00-\x1f\x7f]*\"\]\n(?:[ \t]*(?:url|pushurl|fetch|prune|tagopt)%(value)b)*"
    rb")*" % {b"core": _CORE, b"gc": _GC, b"value": _VALUE}
)

# Keys as git prints them: section and name in small letters, what is between them as it is written.
_SUSPECT = re.compile(
    r"include\..*|includeif\..*|filter\..*|url\..*|credential\..*|protocol\..*|gpg\..*|http\..*|hook\..*|lsrefs\..*"
    r"|extensions\..*"
    r"|core\.(?:sshcommand|hookspath|fsmonitor|worktree|askpass|editor|pager|attributesfile|gitproxy"
    r"|alternaterefscommand|alternaterefsprefixes)"
    r"|diff\.(?:external|.*\.(?:command|textconv))|merge\..*\.driver"
    r"|remote\..*\.(?:uploadpack|receivepack|vcs|proxy|proxyauthmethod|promisor|partialclonefilter|serveroption)"
    r"|submodule\..*\.update|sequence\.editor|interactive\.difffilter|trailer\..*\.(?:command|cmd)"
    # Files that git reads, and says the first line of where it is no object's name.
    r"|(?:.*\.)?fsck\.skiplist"
    r"|gc\.recentobjectshook|uploadpack\.packobjectshook|receive\.procreceiverefs",
    re.DOTALL,
)
# What `git lfs install --local` and `git sparse-checkout` write. Filters do not run anyway, and the file that the last one
# has git read is looked at as well.
_ACCEPTED = frozenset(
    {
        ("filter.lfs.clean", "git-lfs clean -- %f"),
        ("filter.lfs.smudge", "git-lfs smudge -- %f"),
        ("filter.lfs.smudge", "git-lfs smudge --skip -- %f"),
        ("filter.lfs.process", "git-lfs filter-process"),
        ("filter.lfs.process", "git-lfs filter-process --skip"),
        ("filter.lfs.required", "true"),
        ("extensions.worktreeconfig", "true"),
    }
)
# Their values are secrets as a whole.
_SECRET = re.compile(
    r"(?:extraheader|cookie|password|token|secret)[^.]*$", re.IGNORECASE
)
_ADMIN_COMMONDIR = b"../.."


@dataclass(frozen=True, kw_only=True, slots=True)
class Planted:
    """``key`` in the file ``where`` of the clone; its ``value`` as it may be shown. ``digest`` is the whole value's.

    Without a key it is the file itself that leads elsewhere, which nobody can approve.
    """

    where: str
    key: str
    value: str
    digest: str

    def __str__(self) -> str:
        return f"{self.where}: {self.key} = {self.value}" if self.key else self.where

    def as_data(self) -> dict[str, str]:
        return {
            "where": self.where,
            "key": self.key,
            "value": self.value,
            "digest": self.digest,
        }


def look(clone: Path, *, at_objects: bool = False) -> list[Planted]:
    """Everything suspect in the clone's configuration and in that of its worktrees, at most a few dozen entries.

    ``at_objects``: also what git would wait for in the place of an object.
    Where there is more, or more than is looked at, the last entry says so and has no key: nobody approves what was not seen.
    """
    names = [*clone_files.diversions(clone), *clone_files.oddities(clone)]
    if at_objects:
        names += clone_files.odd_objects(clone)
    found = [_file(name) for name in dict.fromkeys(names)]
    read: set[bytes] = set()
    for where in _files(clone):
        found += _in_file(clone, where, read)
        if len(found) > _MOST_FOUND or len(read) > _MOST_READ:
            return [*found[:_MOST_FOUND], _file(f"more than is shown, as in {where}")]
    return found


def _files(clone: Path) -> Iterator[str]:
    yield "config"
    yield "config.worktree"
    try:
        with os.scandir(f"{clone}/worktrees") as entries:
            listed = islice(entries, _MOST_WORKTREES + 1)
            names = [entry.name for entry in listed]
    except OSError:
        return
    for name in sorted(names)[:_MOST_WORKTREES]:
        yield f"worktrees/{name}/config.worktree"
        yield f"worktrees/{name}/commondir"
    if len(names) > _MOST_WORKTREES:
        # No regular file, so that it is one of what is found.
        yield "worktrees"


def _in_file(clone: Path, where: str, read: set[bytes]) -> list[Planted]:
    path = f"{clone}/{where}"
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return [_file(where)]
    except FileNotFoundError:
        return []
    except OSError:
        return [_file(where)]
    text = clone_files.read(path, most=_MOST)
    if text is None:
        return [_file(where)]
    if where.endswith("commondir"):
        return [] if text.rstrip(b"\n") == _ADMIN_COMMONDIR else [_file(where)]
    if _PLAIN.fullmatch(text):
        return []
    read.add(sha256(text).digest())
    found = (_known_suspects if len(text) <= _CACHED_MOST else _suspects)(text)
    if found is None:
        return [_file(where)]
    return [
        Planted(where=_shown(where), key=_shown(key), value=value, digest=digest)
        for key, value, digest in found
    ]


def _suspects(text: bytes) -> tuple[tuple[str, str, str], ...] | None:
    """Key, presentable value and digest of each; None where git cannot read it."""
    try:
        listed = git.run(
            ["config", "--file", "-", "--no-includes", "--null", "--list"], stdin=text
        ).stdout
    except GitFailed as error:
        if error.status < 0:  # killed: nothing is known
            raise
        return None
    found = []
    for entry in listed.split(b"\0")[:-1]:
        raw_key, _, raw_value = entry.partition(b"\n")
        key = raw_key.decode(errors="surrogateescape")
        value = raw_value.decode(errors="surrogateescape")
        if _SUSPECT.fullmatch(key) and (key, value) not in _ACCEPTED:
            digest = sha256(raw_key + b"\0" + raw_value).hexdigest()
            shown = presentable.HIDDEN if _SECRET.search(key) else _shown(value)
            found.append((key, shown, digest))
    return tuple(found)


# An agent decides how large they are, and how many.
_known_suspects = lru_cache(maxsize=1024)(_suspects)


def _file(where: str) -> Planted:
    return Planted(where=_shown(where), key="", value="", digest="")


def _shown(text: str) -> str:
    return presentable.value(text)
