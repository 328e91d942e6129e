"""Making the files of an archive again, in a new directory of our own: as they were, to the byte and the mode."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from workspaces.archiving import composing
from workspaces.archiving.composing import ADMIN, FILES
from workspaces.archiving.manifest import Kind, Manifest
from workspaces.archiving.reading import Top
from workspaces.archiving.store import Store

_WRITABLE = 0o700


def unpack(
    store: Store, commit: str, listed: Manifest, part: str, *, target: Path
) -> None:
    """Make ``target``, which must not exist, with the entries of one part of the archive's commit.

    Nobody else may reach it meanwhile. Raises GitError, OSError and ``NotArchivable``.
    """
    target.mkdir(mode=_WRITABLE)
    _check_out(store, f"{commit}:{part}", listed, target, odd=False)
    # By descriptors: what was archived may lie deeper than its whole path can name.
    with Top(target) as top:
        for entry in listed.entries:
            if entry.path and entry.kind is Kind.DIRECTORY:
                with (
                    _place(top, entry.path) as (parent, name),
                    contextlib.suppress(FileExistsError),
                ):
                    os.mkdir(name, _WRITABLE, dir_fd=parent)
            elif entry.kind is Kind.FIFO:
                with _place(top, entry.path) as (parent, name):
                    os.mkfifo(name, entry.mode, dir_fd=parent)
        _put_odd_ones(store, commit, listed, part, top)
        _set_modes(listed, top)


def _check_out(
    store: Store, tree: str, listed: Manifest, target: Path, *, odd: bool
) -> None:
    """Write the files of one tree, where the manifest has any that are in it."""
    if any(e.has_bytes and composing.is_odd(e) is odd for e in listed.entries):
        store.run("read-tree", tree)
        store.run("checkout-index", "--all", "--quiet", work_tree=target)


def _put_odd_ones(
    store: Store, commit: str, listed: Manifest, part: str, top: Top
) -> None:
    """Those that no git tree can hold by their path: written beside, then moved to their place."""
    beside = top.path.with_name(f"{top.path.name}-odd")
    beside.mkdir(mode=_WRITABLE)
    odd = {FILES: "odd", ADMIN: "admin-odd"}[part]
    _check_out(store, f"{commit}:{odd}", listed, beside, odd=True)
    for n, entry in enumerate(listed.entries):
        if entry.has_bytes and composing.is_odd(entry):
            source = beside / str(n)
            with _place(top, entry.path) as (parent, name):
                if entry.kind is Kind.LINK:
                    os.symlink(source.read_bytes(), name, dir_fd=parent)
                else:
                    os.rename(source, name, dst_dir_fd=parent)


def _set_modes(listed: Manifest, top: Top) -> None:
    """Last, and from the deepest on: what is made unwritable is not written to any more."""
    for entry in reversed(listed.entries):
        if not entry.path:
            top.path.chmod(entry.mode)
        elif entry.kind is not Kind.LINK:
            with _place(top, entry.path) as (parent, name):
                os.chmod(name, entry.mode, dir_fd=parent)


@contextlib.contextmanager
def _place(top: Top, path: bytes) -> Iterator[tuple[int, bytes]]:
    """The directory that the entry is in, open, and its name there."""
    above, _, name = path.rpartition(b"/")
    with top.directory(above) as parent:
        yield parent, name
