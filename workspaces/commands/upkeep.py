"""`workspace reconcile` and `workspace maintain`."""

from __future__ import annotations

import argparse

from django.core.management.base import BaseCommand, CommandError

from jobs.command_line import Options, Verb, actor
from jobs.tables import print_json, print_table
from notify import audit
from workspaces import clones, hosts
from workspaces.commands.verb import add_json, name_argument
from workspaces.upkeep import maintenance
from workspaces.upkeep.reconcile import Report, reconcile
from workspaces.upkeep.survey import IN_WORDS
from workspaces.upkeep.telling import Line

_HEADERS = ("WORKSPACE", "CELL", "WORKTREE", "DIRECTORY", "WHY", "WHAT IS DONE")


def _reconcile_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        help="only this workspace (default: all of this host)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what differs")
    parser.add_argument(
        "--force",
        action="store_true",
        help="also where so much differs that it stops itself: the disk and the database are the right ones",
    )
    add_json(parser)


def _reconcile(command: BaseCommand, options: Options) -> None:
    name, dry_run, force = options["name"], options["dry_run"], options["force"]
    if name is not None:
        hosts.check(clones.find(name))
    report = reconcile(name=name, dry_run=dry_run, force=force)
    if force and not dry_run:
        target = f"workspace:{name}" if name else f"host:{hosts.this_host()}"
        audit.record(actor(), "workspace.reconcile", target=target)
    if options["json"]:
        print_json(command.stdout, _as_json(report))
    else:
        _print(command, report, dry_run=dry_run)
    if report.stopped and not dry_run:
        raise CommandError(f"nothing was done: {report.stopped}")


def _print(command: BaseCommand, report: Report, *, dry_run: bool) -> None:
    if report.lines:
        print_table(command.stdout, _HEADERS, map(_row, report.lines))
    for what, names in (
        ("clone is gone", report.clones_missing),
        ("clone is back", report.clones_back),
        ("passed by, since somebody works on it", report.busy),
        ("directory of no workspace, left alone", report.unknown),
        ("could not be looked at", report.failed),
    ):
        for name in names:
            command.stdout.write(f"{name}: {what}")
    if report.expired:
        command.stdout.write(f"leases that ran out, and were ended: {report.expired}")
    count = len(report.lines)
    said = f"{report.workspaces} workspaces looked at, {count} of their worktrees not as they should be"
    command.stdout.write(
        f"{said}{'; nothing was done' if dry_run or report.stopped else ''}"
    )
    if dry_run and report.stopped:
        command.stdout.write(f"Without --force nothing would be done: {report.stopped}")


def _row(line: Line) -> tuple[object, ...]:
    found = line.found
    done = f"not done: {line.error}" if line.error else IN_WORDS[found.action]
    return (
        line.workspace,
        found.cell,
        None if found.worktree is None else found.worktree.pk,
        found.name,
        found.why,
        f"{done}; {line.said}" if line.said else done,
    )


def _as_json(report: Report) -> dict[str, object]:
    return {
        "workspaces": report.workspaces,
        "stopped": report.stopped,
        "found": [
            {
                "workspace": line.workspace,
                "cell": line.found.cell,
                "action": line.found.action,
                "worktree_id": None
                if line.found.worktree is None
                else line.found.worktree.pk,
                "directory": line.found.name,
                "why": line.found.why,
                "said": line.said,
                "error": line.error,
            }
            for line in report.lines
        ],
        "busy": report.busy,
        "failed": report.failed,
        "clones_missing": report.clones_missing,
        "clones_back": report.clones_back,
        "unknown_directories": report.unknown,
        "leases_ended": report.expired,
    }


def _maintain(command: BaseCommand, options: Options) -> None:
    workspace = clones.find(options["name"])
    clones.check_ready(workspace)
    error = maintenance.maintain(workspace)
    if error:
        raise CommandError(f"{options['name']}: {error}")
    command.stdout.write(f"{options['name']}: maintained")


RECONCILE = Verb(
    name="reconcile",
    help="compare rows, disk and git's list of worktrees, and mend what differs",
    add_arguments=_reconcile_arguments,
    run=_reconcile,
)
MAINTAIN = Verb(
    name="maintain",
    help="pack its references and objects now, in the foreground; exit status 1 when it fails",
    add_arguments=name_argument,
    run=_maintain,
)
