"""``manage.py task publish``: its arguments, and what they make."""

from __future__ import annotations

import argparse
from typing import Any

from jobs.command_line import duration
from workspaces import clones
from workspaces.tasks import actions
from workspaces.tasks.actors import Actor
from workspaces.tasks.command_line import number
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.states import Action, Status, Template
from workspaces.tasks.verbs import add_text


def publish(by: Actor, options: dict[str, Any]) -> Outcome:
    """Publish a task; what it raises is what :func:`workspaces.tasks.actions.publish` does."""
    name = options["workspace"]
    task = actions.publish(
        by=by,
        title=options["title"],
        template=options["template"],
        description=options["description"],
        workspace=clones.find(name) if name is not None else None,
        checklist=options["item"],
        open_for=options["open_for"],
        hold_for=options["hold_for"],
        checkpoint_every=options["checkpoint_every"],
        review_for=options["review_for"],
        final_miss=options["final_miss"],
        returns_allowed=options["returns_allowed"],
    )
    return Outcome(
        ok=True, task_id=task.pk, action=Action.PUBLISH, status=Status(task.status)
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``publish``; what is not given is what the settings ``TASKS_…`` say."""
    parser.add_argument("title", metavar="TITLE")
    parser.add_argument(
        "--template",
        choices=Template.values,
        default=Template.DIRECT.value,
        help="direct: one agent holds it; contest: several submit, one wins (default: direct)",
    )
    add_text(parser, "--description", "what is to be done")
    parser.add_argument("--workspace", metavar="NAME", help="the workspace it is about")
    parser.add_argument(
        "--item",
        action="append",
        default=[],
        metavar="TEXT",
        help="an item of its checklist; may be given again",
    )
    for option, text in (
        ("--open-for", "how long it can be taken, or the contest entered"),
        ("--hold-for", "how long an agent may hold it"),
        ("--checkpoint-every", "how often its holder has to report; 0: never"),
        ("--review-for", "how long its publisher may decide"),
    ):
        parser.add_argument(
            option, type=duration, metavar="D", help=f"{text}; as 1h30m"
        )
    parser.add_argument(
        "--final-miss",
        type=number,
        metavar="N",
        help="the missed checkpoint in a row that costs its holder the task",
    )
    parser.add_argument(
        "--returns-allowed",
        type=number,
        metavar="N",
        help="how often it is offered again when it was given back",
    )
