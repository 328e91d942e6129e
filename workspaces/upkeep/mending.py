"""Doing what a survey found to be done; the caller has the repository's lock. Nothing is deleted: what is in the way is put aside."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.db import transaction

from workspaces import ledger, prune, seal, worktrees
from workspaces.events import LogEvent
from workspaces.exceptions import WorktreeBusy
from workspaces.holding import activity, aside, checkouts, rescuing, staged
from workspaces.models import LedgerEntry, Workspace, Worktree
from workspaces.plumbing import presentable
from workspaces.repository import Repository, Stop
from workspaces.upkeep import registrations, survey
from workspaces.upkeep.survey import REASON, Action, Found

log = logging.getLogger(__name__)

ACTOR = "system"
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")


def mend(
    repository: Repository,
    workspace: Workspace,
    found: Found,
    *,
    stop: Stop | None = None,
) -> str:
    """Do what is to be done about it, and return in words what else there is to know; "": nothing.

    Raises :class:`~workspaces.exceptions.WorkspacesError` and OSError; then it is as it was, or the next pass goes on with it.
    """
    return _Mending(repository, workspace, stop).mend(found)


class _Mending:
    def __init__(
        self, repository: Repository, workspace: Workspace, stop: Stop | None
    ) -> None:
        self._repository = repository
        self._workspace = workspace
        self._stop = stop

    def mend(self, found: Found) -> str:
        does: dict[Action, Callable[[Found], str]] = {
            Action.FINISH: self._finish,
            Action.LOCK: self._lock,
            Action.RELINK: self._relink,
            Action.REPOINT: self._repoint,
            Action.REGISTER: self._register,
            Action.MISS: self._miss,
            Action.TAKE_BACK: self._take_back,
            Action.QUARANTINE: self._quarantine,
            Action.PUT_ASIDE: self._put_aside,
            Action.UNREGISTER: self._unregister,
        }
        return does[found.action](found) if found.action in does else ""

    def _finish(self, found: Found) -> str:
        row = _row_of(found)
        prune.mend(self._repository, row, found.path)
        if row.state == Worktree.State.CREATING:
            self._record(LedgerEntry.Action.DISCARDED, found)
        return ""

    def _lock(self, found: Found) -> str:
        row = _row_of(found)
        worktrees.lock(_admin_of(found), checkouts.lock_reason(row))
        return ""

    def _relink(self, found: Found) -> str:
        registrations.relink(found.path, _admin_of(found))
        return self._usable(found)

    def _repoint(self, found: Found) -> str:
        if found.registration is not None:
            registrations.repoint(found.registration, found.path)
        return self._usable(found)

    def _register(self, found: Found) -> str:
        row = _row_of(found)
        seal.check(self._workspace, self._repository)
        registrations.rebuild(
            self._repository,
            found.path,
            row.branch,
            default=self._workspace.default_branch,
            reason=checkouts.lock_reason(row),
            stop=self._stop,
        )
        return self._usable(found)

    def _take_back(self, found: Found) -> str:
        return self._usable(found)

    def _usable(self, found: Found) -> str:
        if found.worktree is not None:
            rows = Worktree.objects.filter(pk=found.worktree.pk)
            rows.filter(state=Worktree.State.MISSING).update(
                state=Worktree.State.READY, state_reason=""
            )
            rows.filter(
                state__in=[Worktree.State.QUARANTINED, Worktree.State.READY],
                state_reason__startswith=REASON,
            ).update(state=Worktree.State.READY, state_reason="")
        self._record(LedgerEntry.Action.MENDED, found)
        return ""

    def _miss(self, found: Found) -> str:
        self._take_out(found, Worktree.State.MISSING)
        log.warning(LogEvent.WORKTREE_MISSING, extra=self._facts(found))
        return ""

    def _quarantine(self, found: Found) -> str:
        with transaction.atomic():
            self._take_out(found, Worktree.State.QUARANTINED)
            self._record(LedgerEntry.Action.QUARANTINED, found)
        return ""

    def _take_out(self, found: Found, state: Worktree.State) -> None:
        rows = Worktree.objects.filter(pk=_row_of(found).pk)
        reason = survey.reason(found.why)
        # One that is held stays its holder's, who may have moved it, and is told of.
        if not rows.filter(held_by__isnull=True).update(
            state=state, state_reason=reason
        ):
            rows.update(state_reason=reason)

    def _put_aside(self, found: Found) -> str:
        if used := activity.workers(found.path):
            # Nothing is taken from under anybody's feet; the next pass asks again.
            raise WorktreeBusy(f"it stays until nobody works in it: {used}")
        moved = aside.put_aside(self._repository, found.path)
        if found.registration is not None:
            # So it stays a worktree, in which git works.
            registrations.repoint(found.registration, moved)
        said = f"it is in {presentable.value(str(moved), longest=500)} now"
        self._record(LedgerEntry.Action.QUARANTINED, found, said=said)
        return said

    def _unregister(self, found: Found) -> str:
        admin = _admin_of(found)
        seal.check(self._workspace, self._repository)
        prefix = f"acw/rescued-{_NO_NAME.sub('-', admin.name)[:40]}"
        made = rescuing.rescue(self._repository, admin, prefix=prefix, stop=self._stop)
        kept_staged = staged.keep(
            self._repository, admin, prefix=prefix, stop=self._stop
        )
        moved = aside.put_aside(self._repository, admin)
        branches = [*made, *kept_staged]
        kept = (
            f" Its commits have the branches {', '.join(branches)}." if branches else ""
        )
        where = presentable.value(str(moved), longest=500)
        said = f"what git kept of it is in {where} now.{kept}"
        self._record(LedgerEntry.Action.QUARANTINED, found, said=said)
        return said

    def _record(
        self, action: LedgerEntry.Action, found: Found, *, said: str = ""
    ) -> None:
        ledger.record(
            action,
            actor=ACTOR,
            workspace=self._workspace.name,
            worktree=found.worktree,
            data={
                "cell": found.cell,
                "path": presentable.value(str(found.path), longest=500),
                "reason": presentable.value(found.why, longest=500),
                **({"said": said} if said else {}),
            },
        )
        event = (
            LogEvent.WORKTREE_QUARANTINED
            if action is LedgerEntry.Action.QUARANTINED
            else LogEvent.WORKTREE_MENDED
        )
        log.warning(event, extra=self._facts(found))

    def _facts(self, found: Found) -> dict[str, Any]:
        row = found.worktree
        return {
            "workspace": self._workspace.name,
            "worktree_id": None if row is None else row.pk,
            "directory": found.name,
            "cell": found.cell,
            "reason": presentable.value(found.why),
        }


def _row_of(found: Found) -> Worktree:
    assert found.worktree is not None  # noqa: S101 (whoever found this had one)
    return found.worktree


def _admin_of(found: Found) -> Path:
    assert found.registration is not None  # noqa: S101 (whoever found this had one)
    return found.registration.admin
