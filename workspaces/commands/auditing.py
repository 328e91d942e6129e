"""`worktree audit`."""

from __future__ import annotations

import argparse
import sys

from django.core.management.base import BaseCommand, CommandError

from jobs.command_line import Options, Verb
from jobs.tables import print_json, print_table
from workspaces.commands.verb import add_json
from workspaces.pruning import auditing
from workspaces.pruning.auditing import Audited, Finding

_HEADERS = ("AT", "WORKTREE", "WORKSPACE", "BRANCH", "ARCHIVE", "FOUND", "WHY")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="ID", type=int, nargs="?", help="only of this worktree"
    )
    add_json(parser)


def _run(command: BaseCommand, options: Options) -> None:
    audited = list(auditing.audit(options["id"]))
    if options["json"]:
        print_json(command.stdout, [_as_json(one) for one in audited])
    else:
        what = "nothing" if options["id"] is None else f"no worktree {options['id']}"
        empty = f"the ledger says of {what} that it was pruned"
        print_table(command.stdout, _HEADERS, map(_row, audited), empty=empty)
    wrong = sum(one.finding is Finding.WRONG for one in audited)
    if wrong and options["json"]:
        sys.exit(1)
    if wrong:
        raise CommandError(f"{wrong} of {len(audited)} are not as the ledger says")


def _row(one: Audited) -> tuple[object, ...]:
    entry = one.entry
    return (
        entry.at,
        entry.worktree_id,
        entry.workspace,
        entry.branch,
        entry.archive_id,
        one.finding,
        one.why,
    )


def _as_json(one: Audited) -> dict[str, object]:
    entry = one.entry
    return {
        "id": entry.pk,
        "at": entry.at,
        "actor": entry.actor,
        "host": entry.host,
        "workspace": entry.workspace,
        "worktree_id": entry.worktree_id,
        "branch": entry.branch,
        "archive_id": entry.archive_id,
        "commit_sha": entry.commit_sha,
        "manifest_digest": entry.manifest_digest,
        "verified": entry.verified,
        "found": one.finding,
        "why": one.why,
    }


AUDIT = Verb(
    name="audit",
    help="read again every archive that the ledger names; exit status 1 where one is not what it says",
    add_arguments=_arguments,
    run=_run,
)
