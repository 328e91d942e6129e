"""What a clone's own files say, read without git: a process of git costs as much as a small fetch's share of it.

The files are open to agents. Whatever is not written in the simplest of the ways that git accepts is not
judged here: the answer is then "not known", and git has to be asked.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path

MOST_REFS = 200
"""Branches that are files of their own beyond which git is quicker."""

_MOST_PACKED = 2 * 1024 * 1024
_MOST_LOOSE = 200

_OTHER_REFERENCES = ("commondir", "reftable")

_OBJECT = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NAME = re.compile(
    rb"(?!.*(?:\.\.|//|@\{|/\.|\.lock(?:/|$)|\.(?:/|$)))[^\x00-\x20\x7f~^:?*\[\\]+(?<!/)"
)


# Where git finds objects and references. A link there would have others' files read and written.
_PLACES = (
    "objects",
    "objects/info",
    "objects/pack",
    "refs",
    "refs/remotes",
    "refs/remotes/origin",
    "info",
    "worktrees",
    "logs",
    "logs/refs",
    "logs/refs/remotes",
    "logs/refs/remotes/origin",
)
_PLACES_OF_FILES = ("packed-refs", "HEAD", "shallow")
_WALKED = (
    "objects",
    "objects/info",
    "objects/pack",
    "info",
    "refs",
    "logs",
    "worktrees",
)
# Submodules' repositories are not looked into by git unless it is told to.
_NOT_WALKED = re.compile(r"refs/remotes/origin|worktrees/[^/]+/modules", re.DOTALL)
# As git wrote it once, and does where core.preferSymlinkRefs is set.
_HEAD = re.compile(r"worktrees/[^/]+/HEAD", re.DOTALL)
_BRANCH = re.compile(r"refs/heads/(?!.*\.\.)", re.DOTALL)
_MOST_WALKED = 200_000
_MOST_ODD = 50
# Each has git look elsewhere, or take in what lies there.
_ELSEWHERE = ("commondir", "objects/info/alternates")


def diversions(repository: Path) -> list[str]:
    """The names of files by which git would leave the repository, such as a link in the place of its objects; [] is as it should be."""
    top = os.fspath(repository)
    found = [name for name in _ELSEWHERE if os.path.lexists(f"{top}/{name}")]
    for kind, names in ((stat.S_ISDIR, _PLACES), (stat.S_ISREG, _PLACES_OF_FILES)):
        for name in names:
            try:
                mode = os.lstat(f"{top}/{name}").st_mode
            except FileNotFoundError:
                continue
            except OSError:
                mode = 0
            if not kind(mode):
                found.append(name)
    return found


def oddities(repository: Path) -> list[str]:
    """The names of links, pipes and devices below where git reads and writes, a few dozen at most: it follows or waits for them.

    Below ``refs/remotes/origin``, every fetch removes them.
    """
    found: list[str] = []
    # What leads elsewhere itself is one of the diversions.
    directories = [
        name for name in _WALKED if not os.path.islink(f"{repository}/{name}")
    ]
    seen = 0
    while directories and len(found) < _MOST_ODD:
        directory = directories.pop()
        try:
            entries = os.scandir(f"{repository}/{directory}")
        except (FileNotFoundError, NotADirectoryError):
            continue  # never made, or removed meanwhile
        except OSError:
            found.append(directory)
            continue
        with entries:
            for entry in entries:
                seen += 1
                name = f"{directory}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    if directory != "objects" and not _NOT_WALKED.fullmatch(name):
                        directories.append(name)
                elif not entry.is_file(follow_symlinks=False) and _is_odd(entry, name):
                    found.append(name)
        if seen > _MOST_WALKED:
            # What cannot be looked at whole may hold anything.
            return [*found[:_MOST_ODD], directory]
    return found[:_MOST_ODD]


def odd_objects(repository: Path) -> list[str]:
    """The same among the objects that are files of their own; to look at each takes a while where they are many."""
    found: list[str] = []
    for number in range(256):
        directory = f"objects/{number:02x}"
        with (
            contextlib.suppress(OSError),
            os.scandir(f"{repository}/{directory}") as entries,
        ):
            for entry in entries:
                name = f"{directory}/{entry.name}"
                if not entry.is_file(follow_symlinks=False) and _is_odd(entry, name):
                    found.append(name)
                    if len(found) == _MOST_ODD:
                        return found
    return found


def _is_odd(entry: os.DirEntry[str], name: str) -> bool:
    try:
        if entry.is_symlink():
            return not (_HEAD.fullmatch(name) and _BRANCH.match(os.readlink(entry)))
        return not stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def references(repository: Path, prefix: str) -> dict[bytes, bytes] | None:
    """The objects of the references below ``prefix`` (``refs/…/``), by full name; None where that is not known.

    A reference to a reference is left out where it is ``HEAD``.
    """
    # Where agents or a newer git keep them elsewhere.
    if any(os.path.lexists(f"{repository}/{name}") for name in _OTHER_REFERENCES):
        return None
    # In this order, as git does: one that is packed meanwhile is in either.
    loose = _loose(repository, prefix)
    packed = _packed(repository, prefix)
    return None if loose is None or packed is None else packed | loose


def is_name(reference: bytes) -> bool:
    """Whether git takes it for a reference's name; it does nothing at all in a repository that has others packed."""
    return _NAME.fullmatch(reference) is not None


def has_reference(repository: Path, name: str) -> bool:
    """Whether the reference is there as a file of its own; False where that is not known."""
    if ".." in name or os.path.lexists(f"{repository}/commondir"):
        return False
    return _object(f"{repository}/{name}") is not None


def remove_unreadable(repository: Path, prefix: str) -> list[str]:
    """Remove what stands below ``prefix`` where references are and is none: links, pipes, text; return the names.

    Git fails on such, or waits for them. Only names go: nothing that a link leads to.
    """
    removed = []
    directories = [prefix]
    while directories:
        directory = directories.pop()
        try:
            entries = list(os.scandir(f"{repository}/{directory}"))
        except OSError:
            continue
        for entry in entries:
            name = directory + entry.name
            if entry.is_dir(follow_symlinks=False):
                directories.append(f"{name}/")
            elif not (entry.name.endswith(".lock") or _is_reference(entry.path)):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
                    removed.append(name)
    return removed


def _is_reference(path: str) -> bool:
    text = read(path, most=_MOST_LOOSE)
    return text is not None and (
        _OBJECT.fullmatch(text.rstrip(b"\n")) is not None
        or text.startswith(b"ref: refs/")
    )


def _loose(repository: Path, prefix: str) -> dict[bytes, bytes] | None:
    found: dict[bytes, bytes] = {}
    directories = [prefix]
    seen = 0
    while directories:
        directory = directories.pop()
        try:
            entries = os.scandir(f"{repository}/{directory}")
        except FileNotFoundError:
            continue  # never made, or emptied and removed meanwhile
        except OSError:
            return None
        with entries:
            for entry in entries:
                seen += 1
                if seen > MOST_REFS:
                    return None
                name = directory + entry.name
                if entry.name.startswith(".") or entry.name.endswith(".lock"):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    directories.append(f"{name}/")
                elif name != f"{prefix}HEAD":
                    value = _object(entry.path)
                    if value is None:
                        return None
                    found[os.fsencode(name)] = value
    return found


def _packed(repository: Path, prefix: str) -> dict[bytes, bytes] | None:
    path = f"{repository}/packed-refs"
    if not os.path.lexists(path):
        return {}
    text = read(path, most=_MOST_PACKED)
    if text is None:
        return None
    wanted = os.fsencode(prefix)
    found = {}
    for line in text.splitlines():
        value, _, name = line.partition(b" ")
        if name.startswith(wanted) and not value.startswith(b"#"):
            if not _OBJECT.fullmatch(value):
                return None
            found[name] = value
    found.pop(wanted + b"HEAD", None)
    return found


def _object(path: str) -> bytes | None:
    text = read(path, most=_MOST_LOOSE)
    if text is None:
        return None
    value = text.rstrip(b"\n")
    return value if _OBJECT.fullmatch(value) else None


def read(path: str | Path, *, most: int) -> bytes | None:
    """The file's bytes; None where it is no regular file, is missing, cannot be read, or is larger than ``most``."""
    try:
        # A pipe that nobody writes to would be waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        text = os.read(descriptor, most + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return text if len(text) <= most else None
