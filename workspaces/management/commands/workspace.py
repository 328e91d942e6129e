"""``manage.py workspace``: the workspaces of this installation, and the clones of this host."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from jobs.command_line import OperatorCommand, actor
from jobs.redaction import redact
from jobs.tables import print_json, print_table
from notify import audit
from workspaces import clones
from workspaces.exceptions import WorkspacesError
from workspaces.fetch import fetch_workspace
from workspaces.models import Workspace
from workspaces.owners import find_owner


class Command(OperatorCommand):
    help = "Add a clone of a git repository, list, fetch and remove them."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(
            dest="verb", required=True, metavar="add|list|fetch|remove"
        )

        adding = verbs.add_parser("add", help="clone a repository onto this host")
        adding.add_argument("name", metavar="NAME")
        adding.add_argument("url", metavar="URL")
        adding.add_argument(
            "--owner",
            metavar="USER",
            help="who is told what concerns it (default: every admin)",
        )

        listing = verbs.add_parser("list", help="all workspaces, of every host")
        listing.add_argument("--json", action="store_true", help="as JSON, for scripts")

        fetching = verbs.add_parser(
            "fetch", help="fetch it now, in the foreground; exit status 1 when it fails"
        )
        fetching.add_argument("name", metavar="NAME")

        removing = verbs.add_parser(
            "remove", help="remove its rows, its worktrees and its clone"
        )
        removing.add_argument("name", metavar="NAME")
        removing.add_argument(
            "--discard-work",
            action="store_true",
            help="also with changes and commits that are nowhere else",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        verbs = {
            "add": self._add,
            "list": self._list,
            "fetch": self._fetch,
            "remove": self._remove,
        }
        try:
            verbs[options["verb"]](options)
        except WorkspacesError as error:
            raise CommandError(str(error)) from error

    def _add(self, options: dict[str, Any]) -> None:
        owner = find_owner(options["owner"])
        workspace = clones.add_workspace(options["name"], options["url"], owner=owner)
        audit.record(actor(), "workspace.add", target=f"workspace:{workspace.name}")
        self.stdout.write(f"{workspace.name}: cloned to {workspace.path}")

    def _list(self, options: dict[str, Any]) -> None:
        workspaces = Workspace.objects.select_related("owner")
        if options["json"]:
            print_json(self.stdout, [_as_json(workspace) for workspace in workspaces])
            return
        print_table(self.stdout, _HEADERS, map(_row, workspaces), empty="no workspaces")

    def _fetch(self, options: dict[str, Any]) -> None:
        fetched = fetch_workspace(clones.find(options["name"]))
        if fetched.error:
            raise CommandError(f"{options['name']}: {fetched.error}")
        self.stdout.write(
            f"{options['name']}: fetched, {fetched.changed} branches changed"
        )

    def _remove(self, options: dict[str, Any]) -> None:
        workspace = clones.find(options["name"])
        discard_work = options["discard_work"]
        clones.remove_workspace(workspace, discard_work=discard_work)
        audit.record(
            actor(),
            "workspace.remove",
            target=f"workspace:{workspace.name}",
            data={"discard_work": discard_work},
        )
        self.stdout.write(f"{workspace.name}: removed")


_HEADERS = (
    "NAME",
    "HOST",
    "REMOTE",
    "BRANCH",
    "OWNER",
    "FETCHED",
    "FAILING SINCE",
    "PATH",
)


def _row(workspace: Workspace) -> tuple[object, ...]:
    return (
        workspace.name,
        workspace.host,
        redact(workspace.url),
        workspace.default_branch,
        workspace.owner.get_username() if workspace.owner else None,
        workspace.last_fetched_at,
        workspace.failing_since,
        workspace.path,
    )


def _as_json(workspace: Workspace) -> dict[str, object]:
    return {
        "id": workspace.pk,
        "name": workspace.name,
        "host": workspace.host,
        "remote": redact(workspace.url),
        "path": workspace.path,
        "default_branch": workspace.default_branch,
        "owner": workspace.owner.get_username() if workspace.owner else None,
        "last_fetched_at": workspace.last_fetched_at,
        "failing_since": workspace.failing_since,
        "last_fetch_error": workspace.last_fetch_error,
    }
