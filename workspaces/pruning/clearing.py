"""Taking one worktree off the disk, step by step: out of reach, into an archive that is verified, and only then deleted.

The caller has the repository's lock and has claimed the row. Whatever is interrupted is found by what the trash names
(:mod:`workspaces.pruning.trash`), and goes on from there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from django.db.models import Subquery

from workspaces import failures, ledger, seal, worktrees
from workspaces.archiving import snapshot, verifying
from workspaces.exceptions import (
    GitFailed,
    GitOutputTooLarge,
    NotArchivable,
    WorktreeBusy,
)
from workspaces.failures import Failure
from workspaces.holding import activity, aside, nested
from workspaces.models import LedgerEntry, Worktree, WorktreeArchive
from workspaces.plumbing import presentable
from workspaces.pruning import removal, trash
from workspaces.repository import Repository, Stop
from workspaces.upkeep import registrations
from workspaces.upkeep.registrations import Link

# What may be over when it is tried again by itself.
_PASSING = {Failure.LOCK, Failure.DISK_FULL, Failure.TIMEOUT}


def refuse_foreign(repository: Repository, path: Path) -> None:
    """Raise :class:`~workspaces.exceptions.NotArchivable` where its .git leads to what would not be found from the archive."""
    admin = worktrees.registration(repository, path)
    if registrations.link_of(path, admin) is Link.ELSEWHERE:
        raise NotArchivable(
            f"{path}/.git names another repository than the clone; move the directory away by hand, or put its .git right"
        )


def refuse_moved(repository: Repository, worktree: Worktree) -> None:
    """Raise :class:`~workspaces.exceptions.NotArchivable` where git knows its directory at another place, as after `git worktree move`."""
    if worktrees.registration(repository, Path(worktree.path)) is not None:
        return
    # What it is locked as goes with it.
    ours = f"{registrations.LOCK_REASON}:{worktree.pk}:"
    for found in registrations.all_of(repository):
        if found.lock_reason.startswith(ours) and os.path.lexists(found.path):
            place = presentable.value(str(found.path), longest=500)
            raise NotArchivable(
                f"it was moved to {place}; move it back with `git worktree move --force --force`"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Cleared:
    """What the worktree is in from now on, and what the verifier found; None: nothing was left of it to archive."""

    archive: WorktreeArchive | None
    verdict: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Clearing:
    """One worktree, with the path that is its own, and why and by whom it is taken away."""

    repository: Repository
    worktree: Worktree
    path: Path
    reason: WorktreeArchive.Reason
    actor: str
    stop: Stop | None = None

    def archive(self) -> Cleared:
        """Have all of it in an archive, of which nothing can be taken back any more.

        Raises :class:`~workspaces.exceptions.WorktreeBusy` (somebody works in it), ``ArchiveError``, ``ConfigTampered``,
        ``OutsideDataDirectory``, ``GitError`` and OSError; then :meth:`put_back` puts it where it was.
        """
        key = self.worktree.pk
        if (cleared := self.already_archived()) is not None:
            return cleared
        moved = trash.moved(self.repository, key)
        if not os.path.lexists(moved):
            self._move_out()
        elif os.path.lexists(self.path):
            raise NotArchivable(
                f"{self.path} was there again while it was on its way out; what does not belong there is in .stray now"
            )
        has_files = os.path.lexists(moved)
        seal.check(self.worktree.workspace, self.repository)
        if has_files:
            removal.check(moved)
            self._refuse_used(moved)
        taken = self._taken(moved)
        verdict = verifying.verify(self.repository, taken, at=moved, stop=self.stop)
        if has_files:
            # Whoever came in by a directory that was open all the time.
            self._refuse_used(moved)
            trash.give_up(self.repository, key, taken.pk)
        return Cleared(archive=taken, verdict=verdict)

    def _taken(self, moved: Path) -> WorktreeArchive:
        try:
            return snapshot.take(
                self.repository,
                self.worktree,
                at=moved,
                reason=self.reason,
                actor=self.actor,
                stop=self.stop,
            )
        except (GitFailed, GitOutputTooLarge) as error:
            if failures.classify(error) in _PASSING:
                raise
            # It would fail each time, until somebody is told.
            raise NotArchivable(
                f"git cannot read all of it ({error}); `git fsck` and `git status` there say more"
            ) from error

    def already_archived(self) -> Cleared | None:
        """What an earlier attempt came to that only deleting and writing down was left of; None: it had not come so far.

        Raises :class:`~workspaces.exceptions.NotArchivable` where the archive is not known, or the worktree is at another place.
        """
        for archive_id in trash.archives_of(self.repository, self.worktree.pk):
            archive = WorktreeArchive.objects.filter(pk=archive_id).first()
            # What is left of one that was restored since is of its life before.
            if archive is None or archive.restored_at is None:
                return self._known(archive, archive_id)
        moved = trash.moved(self.repository, self.worktree.pk)
        # What git keeps of one whose directory is gone may be all that there is of some work.
        is_gone = (
            not os.path.lexists(moved)
            and not os.path.lexists(self.path)
            and worktrees.registration(self.repository, self.path) is None
        )
        if not is_gone:
            return None
        refuse_moved(self.repository, self.worktree)
        return self._nothing_left()

    def _move_out(self) -> None:
        nested.lock(self.repository, self.path)
        if os.path.lexists(self.path):
            removal.check(self.path)
            refuse_foreign(self.repository, self.path)
            self._refuse_used(self.path)
            removal.check_deletable(self.path, stop=self.stop)
            trash.put_in(self.repository, self.worktree.pk, self.path)

    def _refuse_used(self, directory: Path) -> None:
        if used := activity.workers(directory):
            raise WorktreeBusy(used)

    def _known(self, archive: WorktreeArchive | None, archive_id: int) -> Cleared:
        """One that an earlier attempt was deleting."""
        if archive is None or archive.worktree_id != self.worktree.pk:
            raise NotArchivable(
                f"{trash.archived(self.repository, self.worktree.pk, archive_id)} should be in archive {archive_id}, and there is no "
                "such archive of it: was the database restored from a backup? Move it away by hand"
            )
        when = archive.verified_at
        return Cleared(
            archive=archive,
            verdict=f"verified at {when:%Y-%m-%d %H:%M:%S %Z}, before its removal was interrupted",
        )

    def _nothing_left(self) -> Cleared:
        """Neither files nor a registration: removed by somebody else, or by an attempt that died before it said so."""
        row = Worktree.objects.filter(pk=self.worktree.pk)
        newest = WorktreeArchive.objects.filter(
            worktree_id=self.worktree.pk,
            state=WorktreeArchive.State.VERIFIED,
            # One that was put back after it had been archived may have been worked in since.
            verified_at__gte=Subquery(row.values("use_seen_at")),
        ).first()
        if newest is None:
            return Cleared(archive=None, verdict="")
        when = newest.verified_at
        return Cleared(
            archive=newest,
            verdict=f"verified at {when:%Y-%m-%d %H:%M:%S %Z}; nothing was left on the disk",
        )

    def put_back(self) -> None:
        """Undo what :meth:`archive` did, where it is not archived; raises OSError and ``OutsideDataDirectory``.

        What somebody has put in its place meanwhile is put aside; where that is the worktree, what was moved is.
        """
        moved = trash.moved(self.repository, self.worktree.pk)
        if os.path.lexists(moved):
            self._put_back(moved)
        if os.path.lexists(self.path):
            nested.unlock(self.repository, self.path)

    def _put_back(self, moved: Path) -> None:
        if os.path.lexists(self.path):
            is_worktree = worktrees.known_as(self.repository, self.path) is not None
            place = aside.put_aside(
                self.repository, moved if is_worktree else self.path
            )
            ledger.record(
                LedgerEntry.Action.QUARANTINED,
                actor=self.actor,
                worktree=self.worktree,
                data={
                    "reason": "it stood in the place of a worktree that was put back",
                    "moved_to": str(place),
                },
            )
        trash.take_out(self.repository, self.worktree.pk, self.path)

    def is_given_up(self) -> bool:
        """Whether all of it is in an archive and out of reach, so that it can only be finished: there is nothing to put back."""
        given_up = trash.archives_of(self.repository, self.worktree.pk)
        # What is left of one that was restored since is of its life before.
        archives = WorktreeArchive.objects.filter(pk__in=given_up, restored_at=None)
        return bool(given_up) and archives.exists()

    def delete(self, cleared: Cleared) -> None:
        """Delete what is archived; raises OSError where something cannot be deleted, and can be called again."""
        if cleared.archive is not None:
            key = self.worktree.pk
            trash.delete(self.repository, key, cleared.archive.pk, self.path)
