"""Making the files of an archive again, in a new directory of our own: as they were, to the byte and the mode."""

from __future__ import annotations

import os
from pathlib import Path

from workspaces.archiving import composing
from workspaces.archiving.composing import ADMIN, FILES
from workspaces.archiving.manifest import Kind, Manifest
from workspaces.archiving.store import Store

_WRITABLE = 0o700


def unpack(
    store: Store, commit: str, listed: Manifest, part: str, *, target: Path
) -> None:
    """Make ``target``, which must not exist, with the entries of one part of the archive's commit.

    Nobody else may reach it meanwhile. Raises GitError and OSError.
    """
    target.mkdir(mode=_WRITABLE)
    _check_out(store, f"{commit}:{part}", listed, target, odd=False)
    for entry in listed.entries:
        path = _below(target, entry.path)
        if entry.kind is Kind.DIRECTORY:
            path.mkdir(mode=_WRITABLE, exist_ok=True)
        elif entry.kind is Kind.FIFO:
            os.mkfifo(path, entry.mode)
    _put_odd_ones(store, commit, listed, part, target)
    _set_modes(listed, target)


def _check_out(
    store: Store, tree: str, listed: Manifest, target: Path, *, odd: bool
) -> None:
    """Write the files of one tree, where the manifest has any that are in it."""
    if any(e.has_bytes and composing.is_odd(e.path) is odd for e in listed.entries):
        store.run("read-tree", tree)
        store.run("checkout-index", "--all", "--quiet", work_tree=target)


def _put_odd_ones(
    store: Store, commit: str, listed: Manifest, part: str, target: Path
) -> None:
    """Those that no git tree can hold by their path: written beside, then moved to their place."""
    beside = target.with_name(f"{target.name}-odd")
    beside.mkdir(mode=_WRITABLE)
    odd = {FILES: "odd", ADMIN: "admin-odd"}[part]
    _check_out(store, f"{commit}:{odd}", listed, beside, odd=True)
    for n, entry in enumerate(listed.entries):
        if entry.has_bytes and composing.is_odd(entry.path):
            source, path = beside / str(n), _below(target, entry.path)
            if entry.kind is Kind.LINK:
                os.symlink(source.read_bytes(), os.fsencode(path))
            else:
                os.rename(source, path)


def _set_modes(listed: Manifest, target: Path) -> None:
    """Last, and from the deepest on: what is made unwritable is not written to any more."""
    for entry in reversed(listed.entries):
        if entry.kind is not Kind.LINK:
            _below(target, entry.path).chmod(entry.mode)


def _below(target: Path, path: bytes) -> Path:
    return target / os.fsdecode(path) if path else target
