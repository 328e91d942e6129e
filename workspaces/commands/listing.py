"""`worktree list`, and what scripts are told of a worktree."""

from __future__ import annotations

import datetime as dt

from django.core.management.base import BaseCommand
from django.db.models.functions import Now

from jobs.command_line import Options, Verb
from jobs.display import duration
from jobs.tables import print_json, print_table
from workspaces.commands.verb import add_json
from workspaces.models import Worktree
from workspaces.pruning.prune_time import idle_for, pruned_after
from workspaces.upkeep.sizes import in_words

_HEADERS = (
    "ID",
    "WORKSPACE",
    "HOST",
    "BRANCH",
    "STATE",
    "HELD BY",
    "LEASE UNTIL",
    "IDLE FOR",
    "PRUNED AFTER",
    "WARNED",
    "KEPT BECAUSE OF",
    "SIZE",
    "SIZED AT",
    "PATH",
)


def _list(command: BaseCommand, options: Options) -> None:
    worktrees = Worktree.objects.select_related("workspace").annotate(now=Now())
    if options["json"]:
        print_json(command.stdout, [as_json(worktree) for worktree in worktrees])
        return
    rows = (_row(worktree, worktree.now) for worktree in worktrees)  # type: ignore[attr-defined] # annotated
    print_table(command.stdout, _HEADERS, rows, empty="no worktrees")


def _row(worktree: Worktree, now: dt.datetime) -> tuple[object, ...]:
    return (
        worktree.pk,
        worktree.workspace.name,
        worktree.workspace.host,
        worktree.branch,
        worktree.state,
        worktree.held_by,
        worktree.lease_expires_at,
        duration(idle_for(worktree, now=now)),
        "never (pinned)" if worktree.pinned else pruned_after(worktree, now=now),
        worktree.prune_warning_at,
        worktree.prune_blocked_reason or worktree.state_reason,
        None if worktree.size_bytes is None else in_words(worktree.size_bytes),
        worktree.sized_at,
        worktree.path,
    )


def as_json(worktree: Worktree) -> dict[str, object]:
    """What scripts are told of a worktree."""
    return {
        "id": worktree.pk,
        "workspace": worktree.workspace.name,
        "host": worktree.workspace.host,
        "branch": worktree.branch,
        "path": worktree.path,
        "state": worktree.state,
        "state_reason": worktree.state_reason,
        "held_by": worktree.held_by,
        "held_since": worktree.held_since,
        "last_held_by": worktree.last_held_by,
        "fencing_no": worktree.fencing_no,
        "heartbeat_at": worktree.heartbeat_at,
        "lease_expires_at": worktree.lease_expires_at,
        "last_used_at": worktree.last_used_at,
        "use_seen_at": worktree.use_seen_at,
        "pruned_after": pruned_after(worktree, now=getattr(worktree, "now", None)),
        "kept_until": worktree.kept_until,
        "pinned": worktree.pinned,
        "size_bytes": worktree.size_bytes,
        "sized_at": worktree.sized_at,
        "prune_warning_at": worktree.prune_warning_at,
        "prune_blocked_at": worktree.prune_blocked_at,
        "prune_blocked_reason": worktree.prune_blocked_reason,
        "upstream_gone_at": worktree.upstream_gone_at,
        "created_at": worktree.created_at,
    }


LIST = Verb(
    name="list",
    help="all worktrees, of every host: who holds them until when, how long they are idle, when they are pruned",
    add_arguments=add_json,
    run=_list,
)
