"""`worktree ledger`."""

from __future__ import annotations

import argparse

from django.core.management.base import BaseCommand

from jobs.command_line import Options, Verb
from jobs.tables import print_json, print_table
from workspaces.commands.verb import add_json
from workspaces.models import LedgerEntry

_HEADERS = (
    "AT",
    "ACTION",
    "WORKTREE",
    "WORKSPACE",
    "HOST",
    "BRANCH",
    "BY",
    "ARCHIVE",
    "VERIFIED",
    "PATH",
)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="ID", type=int, nargs="?", help="only of this worktree"
    )
    add_json(parser)


def _run(command: BaseCommand, options: Options) -> None:
    key = options["id"]
    entries = LedgerEntry.objects.order_by("-pk")
    if key is not None:
        entries = entries.filter(worktree_id=key)
    if options["json"]:
        print_json(command.stdout, [_as_json(entry) for entry in entries])
        return
    empty = "the ledger is empty"
    if key is not None:
        empty = f"the ledger has nothing of worktree {key}"
    print_table(command.stdout, _HEADERS, map(_row, entries), empty=empty)


def _row(entry: LedgerEntry) -> tuple[object, ...]:
    return (
        entry.at,
        entry.action,
        entry.worktree_id,
        entry.workspace,
        entry.host,
        entry.branch,
        entry.actor,
        entry.archive_id,
        entry.verified,
        entry.path,
    )


def _as_json(entry: LedgerEntry) -> dict[str, object]:
    return {
        "id": entry.pk,
        "at": entry.at,
        "action": entry.action,
        "actor": entry.actor,
        "host": entry.host,
        "workspace": entry.workspace,
        "worktree_id": entry.worktree_id,
        "branch": entry.branch,
        "path": entry.path,
        "archive_id": entry.archive_id,
        "commit_sha": entry.commit_sha,
        "manifest_digest": entry.manifest_digest,
        "verified": entry.verified,
        "data": entry.data,
    }


LEDGER = Verb(
    name="ledger",
    help="what was done to worktrees' directories, when, by whom, and what was verified before; newest first",
    add_arguments=_arguments,
    run=_run,
)
