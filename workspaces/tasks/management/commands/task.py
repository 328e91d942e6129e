"""``manage.py task``: publish tasks, take them, hand them in, decide about them, and see where they are."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from jobs.command_line import actor as on_command_line
from jobs.tables import print_json, print_table
from workspaces.models import Worktree
from workspaces.tasks import (
    arbitration,
    clock,
    diagram,
    lookup,
    operations,
    publishing,
    taking,
    verbs,
)
from workspaces.tasks.actors import Actor
from workspaces.tasks.command_line import (
    AgentCommand,
    NotApplied,
    acting_agent,
    actor,
    add_as,
    add_json,
    add_operator,
    number,
    with_texts,
)
from workspaces.tasks.display import LIST_HEADERS, list_row, listed, print_task
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.states import Status, Template
from workspaces.tasks.verbs import VERBS, Verb

_SHOWN = 100
_LISTED = 50


class Command(AgentCommand):
    help = (
        "Publish tasks, take them, report, hand in, decide, and look at them. Exit status: 0 when it applied, 1 when it did "
        "not (any more) or there is no such thing, 2 for a wrong call, 3 when it applied and that could not be written."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        names = "|".join(verb.name for verb in VERBS)
        added = parser.add_subparsers(
            dest="verb",
            required=True,
            metavar=f"publish|take|{names}|arbitrate|list|show|diagram",
        )
        publishing_ = added.add_parser("publish", help="publish a task; prints its id")
        publishing.add_arguments(publishing_)
        publishing_.set_defaults(run=self._publish)

        taking_ = added.add_parser("take", help="hold a task")
        taking.add_arguments(taking_)
        taking_.set_defaults(run=self._take)
        acting = [publishing_, taking_]

        for verb in VERBS:
            one = added.add_parser(verb.name, help=verb.help)
            verbs.add_id(one)
            verb.add_arguments(one)
            one.set_defaults(run=partial(self._act, verb))
            if verb.publishers:
                add_operator(one)
            acting.append(one)

        arbitrating = added.add_parser(
            "arbitrate",
            help="ask the arbiter's opinion on a rejection; prints the id of the job that brings it",
        )
        verbs.add_id(arbitrating)
        arbitrating.add_argument(
            "--submission",
            type=number,
            metavar="ID",
            help="the rejected submission (default: the last one)",
        )
        verbs.add_text(arbitrating, "--words", "what the agent says about it")
        add_operator(arbitrating)
        arbitrating.set_defaults(run=self._arbitrate)
        acting.append(arbitrating)

        for one in acting:
            add_as(one)
            add_json(one)
        self._add_looking(added)

    def _add_looking(self, added: argparse._SubParsersAction[CommandParser]) -> None:
        listing = added.add_parser("list", help="the newest tasks, newest first")
        listing.add_argument(
            "--status",
            action="append",
            choices=Status.values,
            metavar="STATUS",
            help=f"only these ({', '.join(Status.values)}); may be given again",
        )
        listing.add_argument(
            "--template", choices=Template.values, help="only of this template"
        )
        listing.add_argument(
            "--mine",
            action="store_true",
            help="only those that the agent holds, has published, or is offered",
        )
        listing.add_argument(
            "--oldest", action="store_true", help="the oldest ones, oldest first"
        )
        _add_limit(listing, _LISTED)
        add_as(listing)
        add_json(listing)
        listing.set_defaults(run=self._list)

        showing = added.add_parser("show", help="all that is known about one task")
        verbs.add_id(showing)
        _add_limit(showing, _SHOWN)
        add_json(showing)
        showing.set_defaults(run=self._show)

        drawing = added.add_parser(
            "diagram", help="the state machine, drawn from its table, as Markdown"
        )
        drawing.add_argument(
            "--write",
            type=Path,
            metavar="FILE",
            help="into the place in this file that two comments mark",
        )
        drawing.set_defaults(run=self._diagram)

    def handle(self, *args: Any, **options: Any) -> None:
        options["run"](options)

    def _publish(self, options: dict[str, Any]) -> None:
        outcome = publishing.publish(actor(options), with_texts(options))
        self._say(outcome, options, line=str(outcome.task_id))

    def _take(self, options: dict[str, Any]) -> None:
        outcome, worktree = taking.take(actor(options), options)
        if worktree is None:
            self._say(outcome, options, line=_line(outcome))
        else:
            line = f"{worktree.pk}\t{worktree.path}"
            self._say(outcome, options, line=line, worktree=_place(worktree))

    def _act(self, verb: Verb, options: dict[str, Any]) -> None:
        by = actor(options)
        options = with_texts(options)
        with transaction.atomic():
            outcome = verb.run(by, options)
            if by.operator and outcome.ok:
                _record(
                    by,
                    outcome.action.value,
                    options,
                    status=outcome.status.value,
                    reason=options.get("reason"),
                )
        self._say(outcome, options, line=_line(outcome, verb.makes))

    def _arbitrate(self, options: dict[str, Any]) -> None:
        by = actor(options)
        options = with_texts(options)
        words = options["words"]
        with transaction.atomic():
            job = arbitration.ask(
                options["id"], by=by, submission=options["submission"], words=words
            )
            if by.operator:
                _record(by, "arbitrate", options, words=words, job_id=str(job))
        if options["json"]:
            said = {"ok": True, "task_id": options["id"], "job_id": str(job)}
            print_json(self.stdout, said)
        else:
            self.stdout.write(str(job))

    def _say(
        self, outcome: Outcome, options: dict[str, Any], *, line: str, **more: Any
    ) -> None:
        if not outcome.ok:
            raise NotApplied.of(outcome)
        if options["json"]:
            print_json(self.stdout, {**outcome.as_dict(), **more})
        else:
            self.stdout.write(line)

    def _list(self, options: dict[str, Any]) -> None:
        found = lookup.tasks(
            statuses=options["status"] or (),
            template=options["template"],
            of=acting_agent(options) if options["mine"] else None,
            oldest_first=options["oldest"],
        )
        limit = options["limit"]
        rows = list(found[: limit + 1])
        if options["json"]:
            print_json(self.stdout, [listed(task) for task in rows[:limit]])
            return
        shown = map(list_row, rows[:limit])
        print_table(self.stdout, LIST_HEADERS, shown, empty="no tasks")
        if len(rows) > limit:
            self.stdout.write("there are more; --limit N shows more")

    def _show(self, options: dict[str, Any]) -> None:
        now = clock.now()
        said = lookup.shown(options["id"], limit=options["limit"], now=now)
        if options["json"]:
            print_json(self.stdout, said)
        else:
            print_task(self.stdout, said, now=now)

    def _diagram(self, options: dict[str, Any]) -> None:
        path = options["write"]
        if path is None:
            self.stdout.write(diagram.drawn())
            return
        try:
            changed = diagram.write(path)
        except (OSError, ValueError) as error:
            raise CommandError(f"{path}: {error}") from error
        self.stdout.write(f"{path}: {'drawn anew' if changed else 'as it was'}")


def _record(by: Actor, action: str, options: dict[str, Any], **facts: Any) -> None:
    """Audit what an operator did here: by whom of this system, and as whom."""
    operations.record(
        on_command_line(),
        action,
        task_id=options["id"],
        submission_id=options.get("submission"),
        **{"as": str(by.agent), **facts},
    )


def _add_limit(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument(
        "--limit",
        type=_positive,
        default=default,
        metavar="N",
        help=f"at most so many (default: {default})",
    )


def _positive(text: str) -> int:
    if (found := number(text)) < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return found


def _place(worktree: Worktree) -> dict[str, Any]:
    return {"id": worktree.pk, "path": worktree.path, "branch": worktree.branch}


def _line(outcome: Outcome, makes: str = "") -> str:
    made = f" ({makes} {outcome.created_id})" if makes and outcome.created_id else ""
    return f"{outcome.task_id}: {outcome.status}{made}"
