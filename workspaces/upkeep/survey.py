"""What rows, the disk and git say of a workspace's worktrees, compared: each difference with what is to be done about it.

Only looks, and runs no git, so that a host's workspaces are gone through in moments and without their locks; whoever acts looks again
under the lock.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from workspaces import paths
from workspaces.exceptions import OutsideDataDirectory
from workspaces.models import Worktree
from workspaces.plumbing import presentable
from workspaces.pruning import trash
from workspaces.repository import Repository
from workspaces.upkeep import registrations
from workspaces.upkeep.registrations import Link, Registration


class Cell(StrEnum):
    """Where a worktree is known: as a row (R), as a directory (D), to git (G). The eighth has none of it."""

    ALL = "RDG"
    ROW_DIRECTORY = "RD-"
    ROW_GIT = "R-G"
    ROW = "R--"
    DIRECTORY_GIT = "-DG"
    DIRECTORY = "-D-"
    GIT = "--G"


class Action(StrEnum):
    """What is done about it."""

    NOTHING = "nothing"
    FINISH = "finish"
    LOCK = "lock"
    RELINK = "relink"
    REPOINT = "repoint"
    REGISTER = "register"
    MISS = "miss"
    TAKE_BACK = "take_back"
    QUARANTINE = "quarantine"
    PUT_ASIDE = "put_aside"
    UNREGISTER = "unregister"


IN_WORDS = {
    Action.NOTHING: "as it should be",
    Action.FINISH: "what was interrupted is finished or undone",
    Action.LOCK: "locked against git worktree prune again",
    Action.RELINK: "its .git, which was gone, is written again",
    Action.REPOINT: "git is told where it is",
    Action.REGISTER: "git, which has forgotten it, is told of it again; its files stay as they are",
    Action.MISS: "marked as missing; an acquire brings it back, and so does the directory",
    Action.TAKE_BACK: "it is there again, and can be acquired",
    Action.QUARANTINE: "not handed out and not pruned until it is looked at",
    Action.PUT_ASIDE: "moved to .stray, and kept",
    Action.UNREGISTER: "what only git's registration has is kept, then it is removed",
}
ALARMING = frozenset(
    {Action.MISS, Action.QUARANTINE, Action.PUT_ASIDE, Action.UNREGISTER}
)
"""What is no matter of course: many of them at once stop the pass."""

_UNFINISHED = (
    Worktree.State.CREATING,
    Worktree.State.PRUNING,
    Worktree.State.RESTORING,
)
REASON = "reconciliation: "
"""How the reason of a quarantine begins that ends by itself."""


def reason(why: str) -> str:
    """What its row says of a worktree that is taken out of use, or whose holder is told."""
    return f"{REASON}{presentable.value(why, longest=500)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """One worktree, or what looks like one; ``why`` is for people."""

    cell: Cell
    action: Action
    path: Path
    worktree: Worktree | None = None
    registration: Registration | None = None
    why: str = ""

    @property
    def is_alarming(self) -> bool:
        """Whether many like it stop the pass. What was put aside is people's to delete, all at once."""
        deleted = self.cell is Cell.GIT and self.path.parent.name == paths.STRAY
        return self.action in ALARMING and not deleted

    @property
    def name(self) -> str:
        """What people are shown: a directory's name may be an agent's."""
        return presentable.value(self.path.name)


def survey(repository: Repository, rows: Iterable[Worktree]) -> list[Found]:
    """Compare the rows, which are those of this clone's workspace, with its disk.

    Raises OSError and :class:`~workspaces.exceptions.OutsideDataDirectory` for what cannot be looked at.
    """
    return list(_Survey(repository, list(rows)).found())


class _Survey:
    def __init__(self, repository: Repository, rows: list[Worktree]) -> None:
        self._repository = repository
        self._rows = rows
        self._root = repository.directory / "worktrees"
        self._trash = paths.trash_path(repository.directory, 0).parent
        self._stray = paths.stray_directory(repository.directory)
        listed = registrations.all_of(repository)
        self._by_path: dict[Path, Registration] = {}
        for registration in listed:
            self._by_path.setdefault(registration.path, registration)
        self._by_admin = {registration.admin: registration for registration in listed}

    def found(self) -> Iterator[Found]:
        known = set()
        for row in self._rows:
            known.add(Path(row.path))
            yield self._of_row(row)
        for path in _entries(self._root):
            if path not in known:
                known.add(path)
                yield self._unknown(path)
        ids = {str(row.pk) for row in self._rows}
        for path in _entries(self._trash):
            # What has more than an id in its name is in an archive, and being deleted.
            if path.name not in ids and not trash.is_archived(path.name):
                yield Found(
                    cell=Cell.DIRECTORY,
                    action=Action.PUT_ASIDE,
                    path=path,
                    why="no worktree of this id is on its way out",
                )
        aside = self._put_aside()
        for path, registration in self._by_path.items():
            if path not in known:
                yield from self._left(path, registration, aside)

    def _of_row(self, row: Worktree) -> Found:
        path = Path(row.path)
        registration = self._by_path.get(path)
        if row.state in _UNFINISHED:
            return Found(
                cell=_cell(os.path.lexists(path), registration),
                action=Action.FINISH,
                path=path,
                worktree=row,
                registration=registration,
                why=f"its row says {row.state}",
            )
        try:
            paths.own_worktree_path(row)
        except OutsideDataDirectory as error:
            return self._odd(row, registration, str(error))
        try:
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                return self._there(row, registration)
        except (FileNotFoundError, NotADirectoryError):
            return self._gone(row, registration)
        except OSError as error:
            said = presentable.disk_error(error)
            return self._odd(row, registration, f"it cannot be looked at: {said}")
        return self._odd(row, registration, "it is no directory")

    def _gone(self, row: Worktree, registration: Registration | None) -> Found:
        known = row.state == Worktree.State.MISSING or (
            row.held_by is not None and row.state_reason.startswith(REASON)
        )
        return Found(
            cell=Cell.ROW if registration is None else Cell.ROW_GIT,
            action=Action.NOTHING if known else Action.MISS,
            path=Path(row.path),
            worktree=row,
            registration=registration,
            why="its directory is gone"
            + (" and git does not know it" if registration is None else ""),
        )

    def _there(self, row: Worktree, registration: Registration | None) -> Found:
        path = Path(row.path)
        cell = _cell(True, registration)
        admin = None if registration is None else registration.admin
        link = registrations.link_of(path, admin)
        moved = None
        if link is Link.ELSEWHERE and registration is None:
            moved = self._by_admin.get(registrations.target_of(path) or path)
        action, why = Action.NOTHING, ""
        if link is Link.POINTS_BACK:
            if row.state != Worktree.State.READY or row.state_reason.startswith(REASON):
                action, why = Action.TAKE_BACK, "it is there again"
                if not _is_ended_here(row):
                    action, why = Action.NOTHING, row.state_reason
            elif registration is not None and not registration.is_ours:
                action, why = Action.LOCK, "it was unlocked"
        elif link in (Link.ABSENT, Link.BROKEN):
            action = Action.REGISTER if registration is None else Action.RELINK
            why = "its .git is gone, or names what is not there"
        elif moved is not None and not os.path.lexists(moved.path):
            action, why = Action.REPOINT, "git looks for it elsewhere"
        else:
            said = "is no file" if link is Link.ODD else "belongs to something else"
            return self._odd(row, registration, f"its .git {said}")
        return Found(
            cell=cell,
            action=action,
            path=path,
            worktree=row,
            registration=moved or registration,
            why=why,
        )

    def _odd(self, row: Worktree, registration: Registration | None, why: str) -> Found:
        known = row.state == Worktree.State.QUARANTINED or row.state_reason == reason(
            why
        )
        return Found(
            cell=_cell(True, registration),
            action=Action.NOTHING if known else Action.QUARANTINE,
            path=Path(row.path),
            worktree=row,
            registration=registration,
            why=why,
        )

    def _unknown(self, path: Path) -> Found:
        registration = self._by_path.get(path)
        return Found(
            cell=Cell.DIRECTORY if registration is None else Cell.DIRECTORY_GIT,
            action=Action.PUT_ASIDE,
            path=path,
            registration=registration,
            why="no worktree has this directory",
        )

    def _left(
        self, path: Path, registration: Registration, aside: dict[Path, Path]
    ) -> Iterator[Found]:
        """Of a registration that neither a row nor a directory belongs to; agents' own, elsewhere, are no concern."""
        if path.parent not in (self._root, self._stray) or os.path.lexists(path):
            return
        moved = aside.get(registration.admin)
        if moved is None and not registration.is_ours:
            return
        yield Found(
            cell=Cell.GIT,
            action=Action.UNREGISTER if moved is None else Action.REPOINT,
            path=path if moved is None else moved,
            registration=registration,
            why="neither a worktree nor a directory belongs to git's registration"
            if moved is None
            else "it was put aside, and git looks for it in its old place",
        )

    def _put_aside(self) -> dict[Path, Path]:
        """What was put aside, by the registration that it says it has."""
        found = {}
        for path in _entries(self._stray):
            if not path.is_symlink() and path.is_dir():
                target = registrations.target_of(path)
                if target is not None:
                    found[target] = path
        return found


def _cell(is_there: bool, registration: Registration | None) -> Cell:
    if is_there:
        return Cell.ROW_DIRECTORY if registration is None else Cell.ALL
    return Cell.ROW if registration is None else Cell.ROW_GIT


def _is_ended_here(row: Worktree) -> bool:
    """Whether what keeps it from being handed out is what reconciliation found, and not somebody else."""
    return row.state == Worktree.State.MISSING or row.state_reason.startswith(REASON)


def _entries(directory: Path) -> list[Path]:
    """What is in it, links and files too; nothing where it is a link itself, or not there."""
    if directory.is_symlink():
        return []
    try:
        return sorted(directory / name for name in os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
