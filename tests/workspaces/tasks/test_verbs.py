from __future__ import annotations

import argparse
import io
from typing import Any

import pytest

from tests.workspaces.factories import WorktreeFactory
from tests.workspaces.tasks.market import agent, contest, entry, held, now, reviewing
from workspaces.exceptions import UnknownWorktree
from workspaces.tasks import command_line, verbs
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.states import Action, Role
from workspaces.tasks.transitions import TRANSITIONS
from workspaces.tasks.verbs import VERBS

pytestmark = pytest.mark.django_db


def act(name: str, by: str, *arguments: object) -> Outcome:
    """What the verb makes of these arguments."""
    (verb,) = (verb for verb in VERBS if verb.name == name)
    parser = argparse.ArgumentParser()
    verbs.add_id(parser)
    verb.add_arguments(parser)
    options: dict[str, Any] = vars(parser.parse_args([*map(str, arguments)]))
    return verb.run(agent(by), command_line.with_texts(options))


def test_there_is_one_for_everything_that_is_done_by_hand():
    by_hand = {row.action for row in TRANSITIONS if row.by is not Role.WORKER}
    named = {verb.name.replace("-", "_") for verb in VERBS}
    elsewhere = {Action.PUBLISH, Action.TAKE}
    short = {Action.PICK_WINNER: "pick", Action.OFFER_TRANSFER: "offer"}
    assert named == {short.get(action, action) for action in by_hand - elsewhere}


def test_an_operator_may_do_what_a_publisher_may():
    publishers = {
        row.action
        for row in TRANSITIONS
        if row.by is Role.PUBLISHER and row.action is not Action.PICK_WINNER
    }
    names = {verb.name for verb in VERBS if verb.publishers}
    assert names == {*publishers, "pick"}


def test_the_parts_of_a_submission():
    task = held("bob", checklist=["one", "two", "three"])
    outcome = act(
        "submit",
        "bob",
        *(task.pk, "--text", "done", "--reference", "acw/x", "--done", "3, 1"),
    )
    submission = task.submissions.get()
    assert outcome.created_id == submission.pk
    assert (submission.text, submission.reference) == ("done", "acw/x")
    assert submission.done == [1, 3]


@pytest.mark.parametrize(
    ("name", "by", "option"),
    [
        ("submit", "bob", "--text"),
        ("checkpoint", "bob", "--note"),
        ("give-back", "bob", "--reason"),
        ("cancel", "alice", "--reason"),
    ],
)
def test_a_text_may_come_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, name: str, by: str, option: str
):
    task = held("bob")
    monkeypatch.setattr("sys.stdin", io.StringIO("two\nlines\n"))
    assert act(name, by, task.pk, option, "-").ok
    texts = set(task.submissions.values_list("text", flat=True))
    for event in task.events.all():
        texts |= {event.data.get("note"), event.data.get("reason")}
    assert "two\nlines" in texts


def test_a_reason_is_kept_with_a_decision():
    task = reviewing("bob")
    act("reject", "alice", task.pk, "--reason", "slow")
    assert entry(task, "bob").reason == "slow"


def test_a_winner_must_have_entered():
    task = contest("bob")
    outcome = act("pick", "alice", task.pk, 99)
    assert (outcome.ok, outcome.code) == (False, "wrong_status")
    assert now(task).status == "open"


def test_a_worktree_by_its_id():
    row = WorktreeFactory()
    assert verbs.worktree(row.pk) == row
    with pytest.raises(UnknownWorktree, match="no worktree 0; `worktree list`"):
        verbs.worktree(0)
