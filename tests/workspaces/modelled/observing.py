"""What an agent's worktree is, read from the disk and from git, and where its bytes are afterwards: with nothing of the product's."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.workspaces.remote import WHO

CACHE = "node_modules"
"""A directory of this name is no loss where git ignores it, as all that the model puts there is."""

# Whatever the clone's configuration says, the agent's own git runs nothing.
_QUIET = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "filter.planted.clean=cat"),
    *("-c", "filter.planted.smudge=cat"),
)


def git(*arguments: str, cwd: Path, accept: Iterable[int] = (0,)) -> str:
    """Run git as an agent would; "" where it ends otherwise than ``accept`` says."""
    done = subprocess.run(
        ["git", *_QUIET, *WHO, *arguments],
        cwd=cwd,
        capture_output=True,
        check=False,
        env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
    )
    said = done.stdout.decode(errors="surrogateescape")
    return said if done.returncode in accept else ""


def object_name(kind: str, content: bytes) -> str:
    """As git names it."""
    head = f"{kind} {len(content)}\0".encode()
    return hashlib.sha1(head + content, usedforsecurity=False).hexdigest()


def _entries(directory: Path) -> Iterator[tuple[str, str, str]]:
    """Each path below, what it is and with which mode, and the name of its bytes."""
    for place, names, files in os.walk(directory):
        names[:] = sorted(name for name in names if name != CACHE)
        for name in sorted([*names, *files]):
            path = Path(place, name)
            shown = str(path.relative_to(directory))
            if shown == ".git":
                continue
            status = path.lstat()
            mode = f"{stat.S_IMODE(status.st_mode):o}"
            if stat.S_ISLNK(status.st_mode):
                yield shown, "link", object_name("blob", os.readlink(path).encode())
            elif stat.S_ISDIR(status.st_mode):
                yield shown, f"directory {mode}", ""
            else:
                yield shown, f"file {mode}", object_name("blob", path.read_bytes())


@dataclass(frozen=True, kw_only=True)
class State:
    """A worktree at one moment. ``said`` is what git says of it; "" where git does not know it."""

    files: dict[str, tuple[str, str]]
    said: str
    head: str
    staged: frozenset[str]

    @property
    def blobs(self) -> set[str]:
        return {blob for _, blob in self.files.values() if blob}


def files_of(directory: Path) -> dict[str, tuple[str, str]]:
    """What each path below is, with the name of its bytes."""
    return {path: (kind, blob) for path, kind, blob in _entries(directory)}


def look(directory: Path) -> State:
    status = git(
        *("status", "--porcelain=v2", "--branch", "--ignored"),
        *("--untracked-files=all", "--", "."),
        cwd=directory,
    )
    listed = git("ls-files", "--stage", cwd=directory)
    merging = git("rev-parse", "--verify", "--quiet", "MERGE_HEAD", cwd=directory)
    lines = [line for line in status.splitlines() if CACHE not in line]
    heads = [line.split()[2] for line in lines if line.startswith("# branch.oid ")]
    said = [line for line in lines if not line.startswith("# ")]
    return State(
        files=files_of(directory),
        said="\n".join([*said, listed, f"merging {merging}"]) if heads else "",
        head=heads[0] if heads else "",
        staged=frozenset(line.split()[1] for line in listed.splitlines()),
    )


def bytes_on_disk(*directories: Path) -> set[str]:
    """The names of the bytes of all files and links below."""
    return {
        blob
        for directory in directories
        for _, _, blob in _entries(directory)
        if directory.exists()
    }


def in_archives(clone: Path) -> set[str]:
    """The names of all objects that the archives in the clone lead to."""
    refs = git("for-each-ref", "--format=%(refname)", "refs/acw/archive", cwd=clone)
    if not refs:
        return set()
    listed = git("rev-list", "--objects", "--no-object-names", *refs.split(), cwd=clone)
    return set(listed.split())


def missing(clone: Path, names: Iterable[str]) -> set[str]:
    """Those of the objects that the clone has not."""
    asked = sorted(names)
    if not asked:
        return set()
    done = subprocess.run(
        ["git", "cat-file", "--batch-check"],
        cwd=clone,
        input="".join(f"{name}\n" for name in asked),
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        line.split()[0] for line in done.stdout.splitlines() if line.endswith("missing")
    }


def reachable(clone: Path) -> set[str]:
    """The commits that a reference, or the log of one, leads to."""
    return set(git("rev-list", "--all", "--reflog", cwd=clone).split())
