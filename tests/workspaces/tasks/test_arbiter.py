from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from tests.workspaces.tasks import plugs
from tests.workspaces.tasks.market import agent, entry, held, now
from workspaces.tasks import actions
from workspaces.tasks.arbiter import Case, Opinion, opinion
from workspaces.tasks.exceptions import ArbiterMissing, RefusedOpinion
from workspaces.tasks.models import Submission

pytestmark = pytest.mark.django_db

Plug = Callable[[Callable[..., Any]], None]


@pytest.fixture
def plug(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Plug:
    """Have this arbiter configured."""
    settings.TASKS_ARBITER = plugs.ARBITER
    return lambda arbiter: monkeypatch.setattr(plugs, "arbiter", arbiter)


@pytest.fixture
def rejected() -> Submission:
    task = held("bob", description="All of them.", checklist=["one", "two"])
    actions.submit(
        task.pk, by=agent("bob"), text="done", reference="acw/sort", done=[1]
    )
    actions.reject(task.pk, by=agent("alice"), reason="two is missing")
    return entry(now(task), "bob")


def test_without_an_arbiter_it_says_so(rejected: Submission):
    with pytest.raises(ArbiterMissing, match=r"none is configured \(TASKS_ARBITER\)"):
        opinion(rejected, asked_by="bob")


def test_it_is_given_the_whole_case(plug: Plug, rejected: Submission):
    seen: list[Case] = []

    def arbiter(case: Case) -> Opinion:
        seen.append(case)
        return Opinion(text=" Two is not asked for. ", favours="holder")

    plug(arbiter)
    said = opinion(rejected, asked_by="bob", words="It was done before.")
    assert said == Opinion(text="Two is not asked for.", favours="holder")
    assert seen == [
        Case(
            task_id=rejected.task_id,
            title="Sort the lists",
            description="All of them.",
            template="direct",
            checklist=("one", "two"),
            publisher="alice",
            submission_id=rejected.pk,
            holder="bob",
            text="done",
            reference="acw/sort",
            done=(1,),
            submitted_at=rejected.created_at,
            rejected_at=rejected.decided_at,
            reason="two is missing",
            asked_by="bob",
            words="It was done before.",
        )
    ]
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen[0].reason = "none"  # type: ignore[misc]


def _favours(side: Any) -> Opinion:
    return Opinion(text="x", favours=side)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "it must return an Opinion, got NoneType"),
        ("bob is right", "it must return an Opinion, got str"),
        (_favours("bob"), "favours 'bob' is none of holder, publisher, neither"),
        (_favours(None), "favours None is none of"),
        (Opinion(text=" ", favours="holder"), "text: must not be empty"),
        (Opinion(text="x" * 4001, favours="holder"), "text: 4,001 characters"),
        (Opinion(text="\x00", favours="holder"), "text: contains a NUL character"),
    ],
)
def test_what_is_no_opinion_is_refused(
    plug: Plug, rejected: Submission, answer: object, says: str
):
    plug(lambda _: answer)
    with pytest.raises(RefusedOpinion, match=f"^TASKS_ARBITER: {says}"):
        opinion(rejected, asked_by="bob")


def test_what_it_raises_is_raised(plug: Plug, rejected: Submission):
    def arbiter(_: Case) -> Opinion:
        raise ZeroDivisionError("no budget")

    plug(arbiter)
    with pytest.raises(ZeroDivisionError, match="no budget"):
        opinion(rejected, asked_by="bob")
