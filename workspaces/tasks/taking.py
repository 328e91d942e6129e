"""``manage.py task take``: hold a task, and a worktree to do it in."""

from __future__ import annotations

import argparse
import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError

from workspaces import holds, hosts, paths
from workspaces.archiving import lookup
from workspaces.commands.verb import refused_by_disk
from workspaces.exceptions import (
    ArchiveError,
    BranchInUse,
    WorkspacesError,
    WorktreeBusy,
    WorktreeHeld,
    WorktreeQuarantined,
)
from workspaces.holding import acquiring
from workspaces.models import Workspace, Worktree
from workspaces.repository import Repository
from workspaces.tasks import actions
from workspaces.tasks.actors import Actor
from workspaces.tasks.command_line import NotApplied, number
from workspaces.tasks.exceptions import UnknownTask
from workspaces.tasks.models import Task, TaskEvent
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.states import Reason
from workspaces.tasks.verbs import add_id, worktree

_NOT_THAT_ONE = (
    ArchiveError,
    BranchInUse,
    WorktreeBusy,
    WorktreeHeld,
    WorktreeQuarantined,
)


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
        help="acquire a worktree of the task's workspace for the agent: the one in which this task was worked on last, "
        "where that is free, or one on a branch of the task's own; prints its id and its path, with a tab between",
    )
    parser.add_argument(
        "--branch",
        metavar="B",
        help="with --acquire: of this branch (default: acw/task-TASK, or acw/task-TASK-2 and so on where others have that)",
    )


def take(by: Actor, options: dict[str, Any]) -> tuple[Outcome, Worktree | None]:
    """Take the task, and return what became of it and the worktree that is used.

    Raises UnknownTask, UnknownWorktree, CommandError for a wrong call, and :class:`NotApplied` where the task is held now
    and ``--acquire`` got no worktree for it.
    """
    if options["branch"] is not None and not options["acquire"]:
        raise CommandError("--branch goes with --acquire", returncode=2)
    if options["acquire"]:
        return _with_acquired(by, options["id"], options["branch"])
    used = None if options["worktree"] is None else worktree(options["worktree"])
    outcome = actions.take(options["id"], by=by, worktree=used)
    return outcome, used if outcome.ok else None


def _with_acquired(
    by: Actor, task_id: int, branch: str | None
) -> tuple[Outcome, Worktree | None]:
    # What can be known beforehand costs nobody the task.
    workspace = _workspace(task_id)
    hosts.check(workspace)
    repository = Repository(paths.own_directory(workspace))
    if branch is not None:
        acquiring.check_branch(repository, branch)
    outcome = actions.take(task_id, by=by)
    if not outcome.ok:
        return outcome, None
    holder = str(by.agent)
    try:
        if branch is not None:
            acquired = holds.acquire(workspace, holder=holder, branch=branch)
        else:
            acquired = _of_the_task(task_id, workspace, repository, holder=holder)
    except WorkspacesError as error:
        raise _without(outcome, str(error), workspace, holder) from error
    except OSError as error:
        raise _without(outcome, refused_by_disk(error), workspace, holder) from error
    used = actions.use_worktree(task_id, by=by, worktree=acquired)
    if not used.ok:
        holds.release(acquired.pk, holder=holder)
        raise _without(outcome, used.reason, workspace, holder)
    return outcome, acquired


def _of_the_task(
    task_id: int, workspace: Workspace, repository: Repository, *, holder: str
) -> Worktree:
    """The worktree in which this task was worked on last, or another that no other task's work is in."""
    used = _used(task_id)
    rows = Worktree.objects.filter(workspace=workspace)
    there = set(rows.filter(pk__in=used).values_list("pk", flat=True))
    pruned = set(used) - set(
        Worktree.objects.filter(pk__in=used).values_list("pk", flat=True)
    )
    for key in used:
        if key in there or (key in pruned and _is_archived(key, workspace)):
            # Somebody may be quicker, and not every archive can be restored.
            with contextlib.suppress(*_NOT_THAT_ONE):
                return holds.acquire_again(key, holder=holder)
    taken = set(rows.values_list("branch", flat=True))
    for name in _names(task_id):
        # One that was pruned has left its branch, and the task's work on it.
        if name not in taken and (pruned or not repository.has_branch(name)):
            with contextlib.suppress(*_NOT_THAT_ONE):
                return holds.acquire(workspace, holder=holder, branch=name)
    raise AssertionError("names never end")


def _is_archived(worktree_id: int, workspace: Workspace) -> bool:
    archive = lookup.latest(worktree_id)
    return archive is not None and archive.workspace_id == workspace.pk


def _used(task_id: int) -> list[int]:
    """The worktrees that were used for the task, those of late first."""
    events = TaskEvent.objects.filter(task=task_id, data__has_key="worktree_id")
    keys = events.order_by("-pk").values_list("data__worktree_id", flat=True)
    return list(dict.fromkeys(keys))


def _names(task_id: int) -> Iterator[str]:
    """What a task's own branches are called."""
    yield f"acw/task-{task_id}"
    yield from (f"acw/task-{task_id}-{n}" for n in itertools.count(2))


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
