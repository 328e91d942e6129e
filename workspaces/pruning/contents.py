"""What a worktree has: what a warning shows, what an archive records, what a removal is refused for.

Nothing is written by looking, and no filter, hook or other command of the repository is run.
"""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from workspaces import worktrees
from workspaces.exceptions import GitOutputTooLarge
from workspaces.plumbing import presentable
from workspaces.pruning import inspection
from workspaces.pruning.inspection import Files, Look, Unseen
from workspaces.repository import Repository, Stop
from workspaces.upkeep import sizes

NAMED_MOST = 20
"""Names of each kind that are kept for people to see; the rest is counted."""

_TOLD_MOST = 3
_LONGEST_NAME = 80
_MOVES = "more moves of HEAD than can be checked"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Found:
    """Things of one kind: how many, and the names of the first, made presentable.

    ``directories`` of them are directories of files that are not counted; ``has_more``: there may be more than were counted.
    """

    count: int = 0
    names: tuple[str, ...] = ()
    directories: int = 0
    has_more: bool = False

    @classmethod
    def of(cls, names: Sequence[str], *, most: int | None = None) -> Found:
        """``most``: so many are looked for."""
        return cls(
            count=len(names),
            names=tuple(_shown(name) for name in names[:NAMED_MOST]),
            directories=sum(name.endswith("/") for name in names),
            has_more=most is not None and len(names) >= most,
        )

    def files_in_words(self, kind: str) -> list[str]:
        """:meth:`in_words` of files that git lists, and of directories that it lists as a whole."""
        if not self.directories:
            return self.in_words(f"{kind} file")
        only = self.directories == self.count
        many = f"{kind} directories" if only else f"{kind} files and directories"
        return self.in_words(f"{kind} directory", many)

    def in_words(self, one: str, many: str = "") -> list[str]:
        """``["2 stashes (a, b)"]``, or [] where there are none."""
        if not self.count:
            return []
        what = one if self.count == 1 else many or f"{one}s"
        shown = ", ".join(self.names[:_TOLD_MOST])
        more = ", …" if self.count > _TOLD_MOST else ""
        count = f"{self.count} or more" if self.has_more else f"{self.count}"
        return [f"{count} {what} ({shown}{more})"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """What was found in a worktree.

    ``commits`` are those that the remote had on no branch at the last fetch, ``merged`` how many of them it has as others with
    the same change (picked, or squashed one by one); ``loose`` are those that no branch of the clone leads to. ``unchecked``
    says what could not be looked at. The bytes are None where they were not measured.
    """

    commits: Found = field(default_factory=Found)
    merged: int = 0
    loose: Found = field(default_factory=Found)
    changed: Found = field(default_factory=Found)
    untracked: Found = field(default_factory=Found)
    ignored: Found = field(default_factory=Found)
    recreatable: Found = field(default_factory=Found)
    hidden: Found = field(default_factory=Found)
    nested: Found = field(default_factory=Found)
    stashes: Found = field(default_factory=Found)
    operations: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    size_bytes: int | None = None
    recreatable_bytes: int | None = None

    @property
    def is_saved(self) -> bool:
        """Whether all of it is somewhere else too, or can be made again."""
        return not self.in_words()

    def in_words(self) -> list[str]:
        """What is nowhere else, one sentence each; [] where there is nothing."""
        merged = (
            f", of which the remote has {self.merged} in other commits"
            if self.merged
            else ""
        )
        return [
            *self.unchecked,
            *(f"{what} in progress" for what in self.operations),
            *self.changed.in_words("uncommitted change"),
            *self.untracked.files_in_words("untracked"),
            *self.ignored.files_in_words("ignored"),
            *self.hidden.in_words(
                "file that git is told not to compare",
                "files that git is told not to compare",
            ),
            *self.nested.in_words(
                "submodule with a repository of its own",
                "submodules with repositories of their own",
            ),
            *(
                said + merged
                for said in self.commits.in_words(
                    "commit that is not pushed", "commits that are not pushed"
                )
            ),
            *self.loose.in_words("commit on no branch", "commits on no branch"),
            *self.stashes.in_words("stash", "stashes"),
        ]

    def size_in_words(self) -> str:
        """``1.2 GiB, of which 1.1 GiB can be made again (node_modules)``; "" where it was not measured."""
        if self.size_bytes is None:
            return ""
        size = sizes.in_words(self.size_bytes)
        if not self.recreatable_bytes:
            return size
        shown = ", ".join(self.recreatable.names[:_TOLD_MOST])
        again = sizes.in_words(self.recreatable_bytes)
        return f"{size}, of which {again} can be made again ({shown})"

    def as_data(self) -> dict[str, Any]:
        """The same for a row or an event: bounded, printable, JSON."""
        kinds = (
            "commits",
            "loose",
            "changed",
            "untracked",
            "ignored",
            "recreatable",
            "hidden",
            "nested",
            "stashes",
        )
        found: dict[str, Found] = {kind: getattr(self, kind) for kind in kinds}
        return {
            **{
                kind: {"count": things.count, "names": list(things.names)}
                for kind, things in found.items()
                if things.count
            },
            "merged": self.merged,
            "operations": list(self.operations),
            "unchecked": list(self.unchecked),
            "size_bytes": self.size_bytes,
            "recreatable_bytes": self.recreatable_bytes,
            "words": self.in_words(),
        }


def look(
    repository: Repository,
    path: Path,
    *,
    at: Path | None = None,
    measure: bool = True,
    stop: Stop | None = None,
) -> Contents:
    """What the worktree of ``path`` has; without ``measure`` its size is not looked for.

    Its files are looked for in ``at`` where they were moved there. Where they are gone, what is left are commits that no
    branch leads to. Raises :class:`~workspaces.exceptions.GitError`.
    """
    directory = at or path
    admin = worktrees.registration(repository, path)
    if not os.path.lexists(directory):
        return (
            Contents()
            if admin is None
            else _without_files(Look(repository.path, admin, path, stop))
        )
    if admin is None or not worktrees.points_back(directory, admin):
        said = (
            "git does not know the directory as this worktree, so it cannot be checked"
        )
        size = sizes.measure(directory, stop=stop).size_bytes if measure else None
        return Contents(unchecked=(said,), size_bytes=size)
    return _with_files(Look(repository.path, admin, directory, stop), measure=measure)


def unpushed_branches(repository: Repository, *, stop: Stop | None = None) -> list[str]:
    """What the clone itself has that the remote had not at the last fetch, in words; [] where nothing."""
    names = inspection.unpushed_branches(repository, stop=stop)
    shown = ", ".join(_shown(name) for name in names[:_TOLD_MOST])
    more = ", …" if len(names) > _TOLD_MOST else ""
    return [f"commits that are not pushed on {shown}{more}"] if names else []


def _without_files(look: Look) -> Contents:
    unchecked: list[str] = []
    loose = _asked(look.commits_on_no_branch, _MOVES, unchecked) or []
    return Contents(
        loose=Found.of(loose, most=inspection.COMMITS_MOST), unchecked=tuple(unchecked)
    )


def _with_files(look: Look, *, measure: bool) -> Contents:
    unchecked: list[str] = []
    files = _asked(look.files, "more changed files than can be listed", unchecked)
    files = files or Files()
    unseen = _asked(look.unseen, "more files than can be listed", unchecked)
    unseen = unseen or Unseen()
    commits = look.unpushed_commits()
    loose = _asked(look.commits_on_no_branch, _MOVES, unchecked) or []
    size, again = _measured(look, files.recreatable) if measure else (None, None)
    return Contents(
        commits=Found.of(commits, most=inspection.COMMITS_MOST),
        merged=look.merged() if commits else 0,
        loose=Found.of(loose, most=inspection.COMMITS_MOST),
        changed=Found.of(files.changed),
        untracked=Found.of(files.untracked),
        ignored=Found.of(files.ignored),
        recreatable=Found.of(files.recreatable),
        hidden=Found.of(unseen.hidden),
        nested=Found.of(unseen.nested),
        stashes=Found.of(look.stashes()),
        operations=tuple(look.operations()),
        unchecked=tuple(unchecked),
        size_bytes=size,
        recreatable_bytes=again,
    )


def _measured(look: Look, recreatable: Sequence[str]) -> tuple[int, int]:
    """What all of it takes on the disk, and these parts of it; at least what could be counted in time."""
    size = sizes.measure(look.directory, stop=look.stop).size_bytes
    end = time.monotonic() + sizes.LONGEST.total_seconds()
    again = 0
    for name in recreatable:
        left = end - time.monotonic()
        if left <= 0:
            break
        limit = dt.timedelta(seconds=left)
        part = sizes.measure(look.directory / name, limit=limit, stop=look.stop)
        again += part.size_bytes
    return size, again


def _asked(question: Callable[[], T], too_much: str, unchecked: list[str]) -> T | None:
    """The answer, or None where it is too long, which ``unchecked`` then says."""
    try:
        return question()
    except GitOutputTooLarge:
        unchecked.append(too_much)
        return None


def _shown(name: str) -> str:
    """Names and titles are an agent's: no control characters and no credentials go into what people read."""
    return "".join(
        char if char.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for char in presentable.value(name, longest=_LONGEST_NAME)
    )
