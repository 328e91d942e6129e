"""Where things lie below ``ACW_DATA_DIR``, and the proof that a row's path is its own place there.

::

    workspaces/<name>/repository.git     the clone
    workspaces/<name>/control.git        what fetches go through; the clone's objects are its own
    workspaces/<name>/worktrees/<…>      its worktrees
    workspaces/<name>/trash/<id>         worktrees on their way out
    workspaces/<name>/.stray/<…>         what stood where a worktree has to be, or had no row
    workspaces/<name>/archiving          what an archive or a restoration needs for a while
    workspaces/<name>/lock               who has it locked may add and remove worktrees
    workspaces/<name>/fetch.lock         who has it locked may fetch
    workspaces/<name>/quarantine/<…>     damaged objects, taken out of the clone
    workspaces/<name>/disposable         present: may be deleted where no row has the name
    archives/<name>/<id>.bundle          archives that are too large for the clone
    attachments/<xx>/<uuid>              attachments' bytes
    attachments/database                 whose they are
    fetches/<host>-<n>                   locked by who fetches from the remote host
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

from workspaces.exceptions import InvalidName, OutsideDataDirectory

if TYPE_CHECKING:
    from workspaces.models import Workspace, Worktree

NAME_MAX_LENGTH = 100
PATH_MAX_LENGTH = 2000
STRAY = ".stray"

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def data_directory() -> Path:
    """``ACW_DATA_DIR``, with symbolic links on the way to it resolved, as git records paths."""
    directory: Path = settings.ACW_DATA_DIR
    return directory.resolve()


def workspaces_directory() -> Path:
    return data_directory() / "workspaces"


def attachments_directory() -> Path:
    return data_directory() / "attachments"


def slots_directory() -> Path:
    return data_directory() / "fetches"


def check_name(name: str) -> None:
    """Raise :class:`~workspaces.exceptions.InvalidName` where no workspace can have the name."""
    if not _NAME.fullmatch(name):
        raise InvalidName(
            f"workspace name {name!r}: it begins with a-z or 0-9, goes on with a-z, 0-9, '.', '_' "
            f"and '-', and has at most {NAME_MAX_LENGTH} characters"
        )


def workspace_directory(name: str) -> Path:
    """The directory of the workspace of this name."""
    check_name(name)
    return workspaces_directory() / name


def repository_path(directory: Path) -> Path:
    return directory / "repository.git"


def control_path(directory: Path) -> Path:
    """The control directory; see :mod:`workspaces.plumbing.control`."""
    return directory / "control.git"


def lock_path(directory: Path) -> Path:
    return directory / "lock"


def fetch_lock_path(directory: Path) -> Path:
    return directory / "fetch.lock"


def disposable_mark(directory: Path) -> Path:
    return directory / "disposable"


def trash_path(directory: Path, worktree_id: int) -> Path:
    return directory / "trash" / str(worktree_id)


def quarantine_path(directory: Path) -> Path:
    return directory / "quarantine"


def archiving_path(directory: Path) -> Path:
    return directory / "archiving"


def bundle_path(name: str, archive_id: int) -> Path:
    """The file of an archive of the workspace of this name that is not kept in the clone."""
    check_name(name)
    return data_directory() / "archives" / name / f"{archive_id}.bundle"


def stray_directory(directory: Path) -> Path:
    return directory / STRAY


def new_worktree_path(directory: Path, branch: str) -> Path:
    """A path for a worktree of this branch that no other has had."""
    readable = _UNSAFE.sub("-", branch).strip("-.")[:60]
    return directory / "worktrees" / f"{readable or 'worktree'}-{secrets.token_hex(4)}"


def own_directory(workspace: Workspace) -> Path:
    """The workspace's directory.

    Raises :class:`~workspaces.exceptions.OutsideDataDirectory` where the row's path is not the one
    that the workspace has below ``ACW_DATA_DIR``, or leads through a symbolic link.
    """
    directory = workspace_directory(workspace.name)
    repository = repository_path(directory)
    if workspace.path != str(repository):
        raise OutsideDataDirectory(
            f"workspace {workspace.name}: its path {workspace.path} is not "
            f"{repository}; was ACW_DATA_DIR changed?"
        )
    _refuse_links(repository, top=directory.parents[1])
    return directory


def own_worktree_path(worktree: Worktree) -> Path:
    """The worktree's directory; raises like :func:`own_directory`."""
    parent = own_directory(worktree.workspace) / "worktrees"
    path = Path(worktree.path)
    if path.parent != parent or path.name in {"", ".", ".."}:
        raise OutsideDataDirectory(
            f"worktree {worktree.pk}: its path {worktree.path} is not directly below {parent}"
        )
    _refuse_links(path, top=data_directory())
    return path


def _refuse_links(path: Path, *, top: Path) -> None:
    """A link on the way from ``top``, the data directory, would let a removal empty what it points to."""
    # As text: every fetch asks this, and paths take longer than the disk.
    above_all, part = os.fspath(top), os.fspath(path)
    while part != above_all:
        if os.path.islink(part):
            raise OutsideDataDirectory(
                f"{part} is a symbolic link; nothing below it is touched"
            )
        above = os.path.dirname(part)
        if above == part:
            raise OutsideDataDirectory(f"{path} is not below ACW_DATA_DIR ({top})")
        part = above
