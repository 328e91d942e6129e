"""``manage.py worktree``: acquire, release and list worktrees, for agents' scripts and operators."""

from __future__ import annotations

import socket
from typing import Any

from django.core.management.base import CommandError, CommandParser

from jobs.command_line import OperatorCommand, actor
from jobs.tables import print_json, print_table
from workspaces import actions, clones, holds
from workspaces.exceptions import WorkspacesError
from workspaces.models import Worktree


class Command(OperatorCommand):
    help = "Acquire a worktree of a workspace, let it go, list them."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(
            dest="verb", required=True, metavar="acquire|release|list"
        )

        acquiring = verbs.add_parser(
            "acquire",
            help="hold a worktree; prints its id and its path, with a tab between",
        )
        acquiring.add_argument("workspace", metavar="WORKSPACE")
        acquiring.add_argument(
            "--branch",
            metavar="B",
            help="of this branch (default: the one that the holder used last, or a new branch)",
        )
        acquiring.add_argument(
            "--holder",
            metavar="H",
            help="who holds it (default: this system's user and host)",
        )
        acquiring.add_argument(
            "--json", action="store_true", help="as JSON, for scripts"
        )

        releasing = verbs.add_parser("release", help="let it go")
        releasing.add_argument("id", metavar="ID", type=int)
        releasing.add_argument(
            "--holder", metavar="H", help="only where this one holds it"
        )

        listing = verbs.add_parser("list", help="all worktrees, of every host")
        listing.add_argument("--json", action="store_true", help="as JSON, for scripts")

    def handle(self, *args: Any, **options: Any) -> None:
        verbs = {
            "acquire": self._acquire,
            "release": self._release,
            "list": self._list,
        }
        try:
            verbs[options["verb"]](options)
        except WorkspacesError as error:
            raise CommandError(str(error)) from error

    def _acquire(self, options: dict[str, Any]) -> None:
        worktree = holds.acquire(
            clones.find(options["workspace"]),
            branch=options["branch"],
            holder=options["holder"] or _default_holder(),
        )
        if options["json"]:
            print_json(self.stdout, _as_json(worktree))
        else:
            self.stdout.write(f"{worktree.pk}\t{worktree.path}")

    def _release(self, options: dict[str, Any]) -> None:
        worktree = actions.release(
            options["id"], actor=actor(), holder=options["holder"]
        )
        self.stdout.write(f"{worktree.pk}: released")

    def _list(self, options: dict[str, Any]) -> None:
        worktrees = Worktree.objects.select_related("workspace")
        if options["json"]:
            print_json(self.stdout, [_as_json(worktree) for worktree in worktrees])
            return
        print_table(self.stdout, _HEADERS, map(_row, worktrees), empty="no worktrees")


def _default_holder() -> str:
    return f"{actor()} on {socket.gethostname()}"


_HEADERS = (
    "ID",
    "WORKSPACE",
    "BRANCH",
    "STATE",
    "HELD BY",
    "LAST USED",
    "WARNED",
    "KEPT BECAUSE OF",
    "PATH",
)


def _row(worktree: Worktree) -> tuple[object, ...]:
    return (
        worktree.pk,
        worktree.workspace.name,
        worktree.branch,
        worktree.state,
        worktree.held_by,
        worktree.last_used_at,
        worktree.prune_warning_at,
        worktree.prune_blocked_reason,
        worktree.path,
    )


def _as_json(worktree: Worktree) -> dict[str, object]:
    return {
        "id": worktree.pk,
        "workspace": worktree.workspace.name,
        "host": worktree.workspace.host,
        "branch": worktree.branch,
        "path": worktree.path,
        "state": worktree.state,
        "held_by": worktree.held_by,
        "held_since": worktree.held_since,
        "last_used_at": worktree.last_used_at,
        "prune_warning_at": worktree.prune_warning_at,
        "prune_blocked_at": worktree.prune_blocked_at,
        "prune_blocked_reason": worktree.prune_blocked_reason,
    }
