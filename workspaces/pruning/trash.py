"""Worktrees on their way out, below ``trash`` of their workspace: what each name there means, and how each step is taken.

``<id>``: moved there, and nothing else; it can be moved back. ``<id>.<archive>``: it is in that archive, which was verified, and
is being deleted. ``<id>.<archive>.registration``: what git had for it, which is in the archive too. A name changes by one rename,
so that whoever finds it, after whatever interruption, knows how far it had come.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection
from pathlib import Path

from workspaces import paths, worktrees
from workspaces.archiving import store
from workspaces.exceptions import OutsideDataDirectory
from workspaces.pruning import removal
from workspaces.repository import Repository

_ARCHIVED = re.compile(r"([0-9]{1,19})\.([0-9]{1,19})(\.registration)?", re.ASCII)


def moved(repository: Repository, worktree_id: int) -> Path:
    """Where a worktree is that was moved out of reach."""
    return paths.trash_path(repository.directory, worktree_id)


def archived(repository: Repository, worktree_id: int, archive_id: int) -> Path:
    """Where a worktree is that is in this archive."""
    return moved(repository, worktree_id).with_name(f"{worktree_id}.{archive_id}")


def archives_of(repository: Repository, worktree_id: int) -> list[int]:
    """The archives that the worktree is or was in, and of which something is still to be deleted."""
    found = {
        archive for owner, archive, _ in _entries(repository) if owner == worktree_id
    }
    return sorted(found, reverse=True)


def is_archived(name: str) -> bool:
    """Whether what has this name in the trash is in an archive."""
    return _ARCHIVED.fullmatch(name) is not None


def archive_ids(repository: Repository) -> set[int]:
    """The archives that something in it is in."""
    return {archive for _, archive, _ in _entries(repository)}


def put_in(repository: Repository, worktree_id: int, path: Path) -> None:
    """Move the worktree's directory out of reach; nobody finds it by its path any more.

    Raises :class:`~workspaces.exceptions.OutsideDataDirectory` and OSError; then it is where it was.
    """
    removal.move(path, moved(repository, worktree_id))


def take_out(repository: Repository, worktree_id: int, path: Path) -> None:
    """Move it back, where it is in the trash and was not archived; raises like :func:`put_in`."""
    place = moved(repository, worktree_id)
    if os.path.lexists(place):
        removal.move(place, path)


def give_up(repository: Repository, worktree_id: int, archive_id: int) -> None:
    """Say of what was moved there that it is in this archive: from here on it can only be deleted, and restored."""
    place = archived(repository, worktree_id, archive_id)
    removal.move(moved(repository, worktree_id), place)
    store.make_durable(place.parent)


def delete(
    repository: Repository, worktree_id: int, archive_id: int, path: Path
) -> None:
    """Delete what is in this archive: the registration of the worktree at ``path`` and its files; its branch stays.

    Not by ``git worktree remove``, which would delete what somebody has put at ``path`` meanwhile, and can be interrupted with
    half a registration left. Raises OSError; what is left is deleted by another call.
    """
    place = archived(repository, worktree_id, archive_id)
    registration = place.with_name(f"{place.name}.registration")
    admin = worktrees.registration(repository, path)
    if admin is not None:
        removal.delete_tree(registration)
        place.parent.mkdir(exist_ok=True)
        os.rename(admin, registration)
    removal.delete_tree(registration)
    # Last: while it is there, it is known which archive has it.
    removal.delete_tree(place)


def sweep(repository: Repository, *, archive_ids: Collection[int]) -> int:
    """Delete what is left of worktrees that are in one of these archives; return how many could be deleted.

    The caller has the repository's lock, and knows that nobody is to find them there any more.
    """
    count = 0
    for owner, archive, name in _entries(repository):
        if archive not in archive_ids:
            continue
        with contextlib.suppress(OSError, OutsideDataDirectory):
            removal.delete_tree(archived(repository, owner, archive).with_name(name))
            count += 1
    return count


def _entries(repository: Repository) -> list[tuple[int, int, str]]:
    """Of what is archived: the worktree's id, the archive's, and the name."""
    directory = moved(repository, 0).parent
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    matches = [match for name in names if (match := _ARCHIVED.fullmatch(name))]
    return [(int(match[1]), int(match[2]), match[0]) for match in matches]
