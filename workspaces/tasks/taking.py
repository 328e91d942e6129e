"""``manage.py task take``: hold a task, and a worktree to do it in."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from workspaces import holds, hosts
from workspaces.exceptions import WorkspacesError
from workspaces.models import Workspace, Worktree
from workspaces.tasks import actions
from workspaces.tasks.actors import Actor
from workspaces.tasks.command_line import NotApplied, number
from workspaces.tasks.exceptions import UnknownTask
from workspaces.tasks.models import Task
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.states import Reason
from workspaces.tasks.verbs import add_id, worktree


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``take``."""
    add_id(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--worktree",
        type=number,
        metavar="ID",
        help="work in this worktree, which the agent holds already",
    )
    which.add_argument(
        "--acquire",
        action="store_true",
        help="acquire a worktree of the task's workspace for the agent; prints its id and its path, with a tab between",
    )
    parser.add_argument(
        "--branch",
        metavar="B",
        help="with --acquire: of this branch (default: the one that the agent used last, or a new branch)",
    )


def take(by: Actor, options: dict[str, Any]) -> tuple[Outcome, Worktree | None]:
    """Take the task, and return what became of it and the worktree that is used.

    Raises UnknownTask, UnknownWorktree, CommandError for a wrong call, and :class:`NotApplied` where the task is held now
    and ``--acquire`` got no worktree for it.
    """
    if options["branch"] is not None and not options["acquire"]:
        raise CommandError("--branch goes with --acquire", returncode=2)
    if options["acquire"]:
        return _with_new_worktree(by, options["id"], options["branch"])
    used = None if options["worktree"] is None else worktree(options["worktree"])
    outcome = actions.take(options["id"], by=by, worktree=used)
    return outcome, used if outcome.ok else None


def _with_new_worktree(
    by: Actor, task_id: int, branch: str | None
) -> tuple[Outcome, Worktree | None]:
    # What can be known beforehand costs nobody the task.
    workspace = _workspace(task_id)
    hosts.check(workspace)
    outcome = actions.take(task_id, by=by)
    if not outcome.ok:
        return outcome, None
    holder = str(by.agent)
    try:
        acquired = holds.acquire(workspace, holder=holder, branch=branch)
    except WorkspacesError as error:
        raise _without(outcome, str(error), workspace, holder) from error
    used = actions.use_worktree(task_id, by=by, worktree=acquired)
    if not used.ok:
        holds.release(acquired.pk, holder=holder)
        raise _without(outcome, used.reason, workspace, holder)
    return outcome, acquired


def _workspace(task_id: int) -> Workspace:
    task = Task.objects.select_related("workspace").filter(pk=task_id).first()
    if task is None:
        raise UnknownTask(f"there is no task {task_id}")
    if task.workspace is None:
        raise CommandError(
            f"{task} names no workspace, so no worktree can be acquired for it; take it without --acquire"
        )
    return task.workspace


def _without(
    outcome: Outcome, problem: str, workspace: Workspace, holder: str
) -> NotApplied:
    reason = (
        f"task {outcome.task_id} was taken, but has no worktree: {problem}. It stays {holder}'s: "
        f"`worktree acquire {workspace.name} --holder {holder}` and `task use-worktree {outcome.task_id} WORKTREE`, "
        f"or `task give-back {outcome.task_id}`"
    )
    return NotApplied(
        {
            **outcome.as_dict(),
            "ok": False,
            "reason": reason,
            "code": Reason.WORKTREE_REFUSED.value,
        }
    )
