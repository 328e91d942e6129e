"""`worktree restore` and `worktree archives`."""

from __future__ import annotations

import argparse

from django.core.management.base import BaseCommand

from jobs.command_line import Options, Verb, actor
from jobs.tables import print_json, print_table, printable
from workspaces.archiving import restoring
from workspaces.commands.listing import as_json
from workspaces.commands.verb import add_json, id_argument
from workspaces.models import WorktreeArchive

_HEADERS = (
    "WORKTREE",
    "ARCHIVE",
    "WORKSPACE",
    "HOST",
    "BRANCH",
    "STATE",
    "MADE",
    "UNTIL",
    "BYTES",
    "LAST HELD BY",
    "WHAT ONLY IT HAS",
)


def _restore_arguments(parser: argparse.ArgumentParser) -> None:
    id_argument(parser)
    add_json(parser)


def _restore(command: BaseCommand, options: Options) -> None:
    worktree = restoring.restore(options["id"], actor=actor())
    if options["json"]:
        print_json(command.stdout, as_json(worktree))
        return
    command.stdout.write(f"{worktree.pk}\t{worktree.path}")
    if worktree.state_reason:
        command.stderr.write(printable(worktree.state_reason))


def _archives(command: BaseCommand, options: Options) -> None:
    archives = WorktreeArchive.objects.select_related("workspace")
    if options["json"]:
        print_json(command.stdout, [_as_json(archive) for archive in archives])
        return
    print_table(command.stdout, _HEADERS, map(_row, archives), empty="no archives")


def _row(archive: WorktreeArchive) -> tuple[object, ...]:
    return (
        archive.worktree_id,
        archive.pk,
        archive.workspace.name,
        archive.workspace.host,
        archive.branch,
        archive.state,
        archive.created_at,
        archive.expires_at,
        archive.size_bytes,
        archive.last_held_by,
        "; ".join(archive.contents.get("words", [])),
    )


def _as_json(archive: WorktreeArchive) -> dict[str, object]:
    return {
        "id": archive.pk,
        "worktree_id": archive.worktree_id,
        "workspace": archive.workspace.name,
        "host": archive.workspace.host,
        "branch": archive.branch,
        "path": archive.path,
        "state": archive.state,
        "reason": archive.reason,
        "actor": archive.actor,
        "last_held_by": archive.last_held_by,
        "last_used_at": archive.last_used_at,
        "commit": archive.commit_sha,
        "manifest_digest": archive.manifest_digest,
        "bundle": archive.bundle,
        "bundle_digest": archive.bundle_digest,
        "entries": archive.entries,
        "size_bytes": archive.size_bytes,
        "contents": archive.contents,
        "created_at": archive.created_at,
        "verified_at": archive.verified_at,
        "restored_at": archive.restored_at,
        "expires_at": archive.expires_at,
    }


RESTORE = Verb(
    name="restore",
    help="bring back a worktree that was pruned, bit for bit; prints its id and its path, with a tab between",
    add_arguments=_restore_arguments,
    run=_restore,
)
ARCHIVES = Verb(
    name="archives",
    help="all that was archived, of every host: of what, until when it can be restored, what only it has",
    add_arguments=add_json,
    run=_archives,
)
