"""What a clone's own files say, read without git: a process of git costs as much as a small fetch's share of it.

The files are open to agents. Whatever is not written in the simplest of the ways that git accepts is not
judged here: the answer is then "not known", and git has to be asked.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

MOST_REFS = 200
"""Branches that are files of their own beyond which git is quicker."""

_MOST_CONFIG = 64 * 1024
_MOST_PACKED = 256 * 1024
_MOST_LOOSE = 200

# A value without quotes and backslashes ends with its line, so that each line means what it means alone.
_SETTING = rb"[ \t]*[A-Za-z][A-Za-z0-9-]*[ \t]*=[^\"\\\x00-\x1f\x7f]*"
# Sections no key of which says where a remote is or how to get there, and which take in no other file. A fetch that names
# its URL is none of the remote that is called origin.
_SECTION = (
    rb"\[(?:core|gc|user|push|pull|rebase|merge|color|init|commit|advice"
    rb"|remote \"origin\"|branch \"[^\"\\\]\x00-\x1f\x7f]*\")\]"
)
_HARMLESS = re.compile(rb"(?:(?:%b|%b|[ \t]*)\n)*" % (_SECTION, _SETTING))
# Each takes the place of configuration that was looked at, or adds to it.
_ELSEWHERE = ("commondir", "remotes", "branches")

_OTHER_REFERENCES = ("commondir", "reftable")

_OBJECT = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def keeps_urls(repository: Path) -> bool:
    """Whether the configuration surely says nothing of URLs and of how they are reached; False where that is not known."""
    if any(os.path.lexists(f"{repository}/{name}") for name in _ELSEWHERE):
        return False
    text = _read(f"{repository}/config", most=_MOST_CONFIG)
    return text is not None and _HARMLESS.fullmatch(text) is not None


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


def has_reference(repository: Path, name: str) -> bool:
    """Whether the reference is there as a file of its own; False where that is not known."""
    if ".." in name or os.path.lexists(f"{repository}/commondir"):
        return False
    return _object(f"{repository}/{name}") is not None


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
    text = _read(path, most=_MOST_PACKED)
    if text is None:
        return None
    wanted = os.fsencode(prefix)
    found = {}
    for line in text.splitlines():
        value, _, name = line.partition(b" ")
        if name.startswith(wanted) and not value.startswith(b"#"):
            found[name] = value
    found.pop(wanted + b"HEAD", None)
    return found


def _object(path: str) -> bytes | None:
    text = _read(path, most=_MOST_LOOSE)
    if text is None:
        return None
    value = text.rstrip(b"\n")
    return value if _OBJECT.fullmatch(value) else None


def _read(path: str, *, most: int) -> bytes | None:
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
