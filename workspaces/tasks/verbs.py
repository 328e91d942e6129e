"""The verbs of ``manage.py task`` that act on a task: their arguments, and the functions that they call."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from jobs.command_line import duration
from workspaces.exceptions import UnknownWorktree
from workspaces.models import Worktree
from workspaces.tasks import actions, agents, command_line
from workspaces.tasks.actors import Actor
from workspaces.tasks.command_line import number, numbers
from workspaces.tasks.outcomes import Outcome

Parser = argparse.ArgumentParser


@dataclass(frozen=True, kw_only=True)
class Verb:
    """``run`` is given who acts and the options; ``publishers`` verbs can also be an operator's.

    ``makes`` is what the id in the outcome is of.
    """

    name: str
    help: str
    run: Callable[[Actor, dict[str, Any]], Outcome]
    add_arguments: Callable[[Parser], None] = lambda _: None
    publishers: bool = False
    makes: str = ""


def add_id(parser: Parser) -> None:
    """Add the task's id."""
    parser.add_argument("id", metavar="TASK", type=number, help="the task's id")


def worktree(worktree_id: int) -> Worktree:
    """The worktree of this id; raises :class:`~workspaces.exceptions.UnknownWorktree`."""
    found = Worktree.objects.select_related("workspace").filter(pk=worktree_id).first()
    if found is None:
        raise UnknownWorktree(
            f"there is no worktree {worktree_id}; `worktree list` shows those there are"
        )
    return found


def _use_worktree(by: Actor, options: dict[str, Any]) -> Outcome:
    wanted = options["worktree"]
    return actions.use_worktree(
        options["id"], by=by, worktree=None if wanted is None else worktree(wanted)
    )


def _add_use_worktree(parser: Parser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "worktree",
        nargs="?",
        type=number,
        metavar="WORKTREE",
        help="the id of a worktree that the agent holds",
    )
    which.add_argument(
        "--none", action="store_true", help="let go of the one that is used"
    )


def _checkpoint(by: Actor, options: dict[str, Any]) -> Outcome:
    return actions.checkpoint(options["id"], by=by, note=options["note"])


def _submit(by: Actor, options: dict[str, Any]) -> Outcome:
    return actions.submit(
        options["id"],
        by=by,
        text=options["text"],
        reference=options["reference"],
        done=options["done"],
    )


def _add_submit(parser: Parser) -> None:
    add_text(parser, "--text", "what is handed in")
    parser.add_argument(
        "--reference",
        default="",
        metavar="WHERE",
        help="where the work is: a branch, a commit, a URL",
    )
    parser.add_argument(
        "--done",
        type=numbers,
        default=[],
        metavar="1,3",
        help="the items of the checklist that are done",
    )


def _with_reason(
    act: Callable[..., Outcome], by: Actor, options: dict[str, Any]
) -> Outcome:
    return act(options["id"], by=by, reason=options["reason"])


def _alone(act: Callable[..., Outcome], by: Actor, options: dict[str, Any]) -> Outcome:
    return act(options["id"], by=by)


def _pick(by: Actor, options: dict[str, Any]) -> Outcome:
    return actions.pick_winner(
        options["id"],
        by=by,
        submission=options["submission"],
        reason=options["reason"],
    )


def _add_pick(parser: Parser) -> None:
    parser.add_argument(
        "submission", type=number, metavar="SUBMISSION", help="the winner's id"
    )
    add_text(parser, "--reason", "why")


def _reopen(by: Actor, options: dict[str, Any]) -> Outcome:
    return actions.reopen(options["id"], by=by, open_for=options["open_for"])


def _add_reopen(parser: Parser) -> None:
    parser.add_argument(
        "--open-for",
        type=duration,
        metavar="D",
        help="for how long (default: as long as before)",
    )


def _offer(by: Actor, options: dict[str, Any]) -> Outcome:
    return actions.offer_transfer(
        options["id"], by=by, to=agents.find(options["to"]), note=options["note"]
    )


def _add_offer(parser: Parser) -> None:
    parser.add_argument("--to", required=True, metavar="AGENT", help="to whom")
    add_text(parser, "--note", "a word to them")


def add_text(parser: Parser, option: str, text: str, *, required: bool = False) -> None:
    """Add an option that takes a text, which :func:`workspaces.tasks.command_line.with_texts` completes."""
    parser.add_argument(
        option,
        type=command_line.text,
        default="",
        metavar="TEXT",
        required=required,
        help=f"{text}; - reads standard input",
    )


def _add_note(parser: Parser) -> None:
    add_text(parser, "--note", "how it goes")


def _add_reason(parser: Parser) -> None:
    add_text(parser, "--reason", "why")


def _add_required_reason(parser: Parser) -> None:
    add_text(parser, "--reason", "why", required=True)


VERBS: tuple[Verb, ...] = (
    Verb(
        name="use-worktree",
        help="work in a worktree that the agent holds, or in none",
        run=_use_worktree,
        add_arguments=_add_use_worktree,
    ),
    Verb(
        name="checkpoint",
        help="report how it goes",
        run=_checkpoint,
        add_arguments=_add_note,
        makes="checkpoint",
    ),
    Verb(
        name="submit",
        help="hand the work in, or enter the contest",
        run=_submit,
        add_arguments=_add_submit,
        makes="submission",
    ),
    Verb(
        name="give-back",
        help="let go of the task before its time is over",
        run=partial(_with_reason, actions.give_back),
        add_arguments=_add_reason,
    ),
    Verb(
        name="accept",
        help="accept what was handed in",
        run=partial(_with_reason, actions.accept),
        add_arguments=_add_reason,
        publishers=True,
    ),
    Verb(
        name="reject",
        help="reject it; the holder goes on where time is left",
        run=partial(_with_reason, actions.reject),
        add_arguments=_add_required_reason,
        publishers=True,
    ),
    Verb(
        name="pick",
        help="choose the winner of a contest",
        run=_pick,
        add_arguments=_add_pick,
        publishers=True,
    ),
    Verb(
        name="cancel",
        help="withdraw the task",
        run=partial(_with_reason, actions.cancel),
        add_arguments=_add_reason,
        publishers=True,
    ),
    Verb(
        name="reopen",
        help="offer a task again that came to nothing",
        run=_reopen,
        add_arguments=_add_reopen,
        publishers=True,
    ),
    Verb(
        name="offer",
        help="offer to hand the task over to another agent",
        run=_offer,
        add_arguments=_add_offer,
        makes="transfer",
    ),
    Verb(
        name="accept-transfer",
        help="hold a task that was offered",
        run=partial(_alone, actions.accept_transfer),
    ),
    Verb(
        name="decline-transfer",
        help="leave it with who offered it",
        run=partial(_alone, actions.decline_transfer),
    ),
    Verb(
        name="withdraw-transfer",
        help="take an offer back",
        run=partial(_alone, actions.withdraw_transfer),
    ),
)
"""All but ``take``, which has a module of its own."""
