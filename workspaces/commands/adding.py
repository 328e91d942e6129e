"""`workspace add`: asks for a workspace and shows how its clone is coming."""

from __future__ import annotations

import argparse
import time

from django.core.management.base import BaseCommand, CommandError

from jobs.command_line import Options, Verb, actor
from jobs.heartbeat import alive_within
from jobs.models import WorkerProcess
from notify import audit
from workspaces import clones, hosts
from workspaces.commands.verb import name_argument
from workspaces.models import Workspace
from workspaces.owners import find_owner

_LOOK_EVERY = 0.2
_LOOKS_FOR_WORKER = 25


def _arguments(parser: argparse.ArgumentParser) -> None:
    name_argument(parser)
    parser.add_argument("url", metavar="URL")
    parser.add_argument(
        "--owner",
        metavar="USER",
        help="who is told what concerns it (default: every admin)",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--no-wait",
        action="store_true",
        help="leave it to a worker of this host, and end at once",
    )
    how.add_argument(
        "--now",
        action="store_true",
        help="clone in the foreground, without a worker",
    )


def _run(command: BaseCommand, options: Options) -> None:
    name, url = options["name"], options["url"]
    owner = find_owner(options["owner"])
    clones.check_new(name, url)
    now = options["now"]
    if not (now or options["no_wait"] or _has_worker()):
        command.stderr.write("no worker of this host is alive: cloned here and now")
        now = True
    if now:
        workspace = clones.add_workspace(name, url, owner=owner, tell=_shower(command))
        audit.record(actor(), "workspace.add", target=f"workspace:{name}")
    else:
        workspace = clones.request_workspace(name, url, owner=owner, actor=actor())
        if options["no_wait"]:
            command.stdout.write(f"{name}: will be cloned to {workspace.path}")
            return
        _wait(command, workspace)
    command.stdout.write(f"{workspace.name}: cloned to {workspace.path}")


def _has_worker() -> bool:
    host = hosts.this_host()
    alive = WorkerProcess.objects.alive(alive_within()).filter(stopping=False)
    return any(
        hosts.queue_of(host) in worker.queues for worker in alive.filter(host=host)
    )


def _wait(command: BaseCommand, workspace: Workspace) -> None:
    """Show how it is coming until it is there."""
    name, show, looks = workspace.name, _shower(command), 0
    try:
        while True:
            row = Workspace.objects.filter(pk=workspace.pk).first()
            if row is None:
                raise CommandError(f"{name}: was removed meanwhile")
            if row.state == Workspace.State.FAILED:
                raise CommandError(
                    f"{name}: {row.last_fetch_error}; the row stays, and `workspace fetch {name}` tries again"
                )
            if row.state == Workspace.State.READY:
                return
            show(row.clone_progress)
            looks += 1
            if looks % _LOOKS_FOR_WORKER == 0 and not _has_worker():
                show("no worker of this host is alive any more: the next one goes on")
            _pause()
    except KeyboardInterrupt:
        raise CommandError(
            f"{name}: goes on being cloned; `workspace show {name}` says how far it is",
            returncode=130,
        ) from None


def _pause() -> None:
    time.sleep(_LOOK_EVERY)


class _shower:  # noqa: N801 (used as a function)
    """Shows each step once."""

    def __init__(self, command: BaseCommand) -> None:
        self._command = command
        self._last = ""

    def __call__(self, said: str) -> None:
        if said and said != self._last:
            self._last = said
            self._command.stderr.write(said)


ADD = Verb(
    name="add",
    help="clone a repository onto this host, and show how it is coming",
    add_arguments=_arguments,
    run=_run,
)
