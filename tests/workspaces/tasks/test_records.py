"""The rows that belong to a task: what they cannot hold, whoever writes to them."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.db.models.functions import Now

from tests.workspaces.tasks.market import (
    agent,
    contest,
    entry,
    last_event,
    offered,
    publish,
)
from workspaces.tasks import actions
from workspaces.tasks.models import Checkpoint, Submission, TaskEvent, Transfer

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("model", "values", "constraint"),
    [
        (
            Submission,
            {"decision": "lost", "decided_at": Now()},
            "task_submissions_decision_known",
        ),
        (Submission, {"decision": "rejected"}, "task_submissions_decided_at"),
        (Submission, {"decided_at": Now()}, "task_submissions_decided_at"),
        (
            Submission,
            {"decision": "accepted", "decided_at": Now()},
            "task_submissions_one_accepted",
        ),
        (
            Transfer,
            {"status": "lost", "answered_at": Now()},
            "task_transfers_status_known",
        ),
        (Transfer, {"status": "declined"}, "task_transfers_answered_at"),
        (Transfer, {"answered_at": Now()}, "task_transfers_answered_at"),
    ],
)
def test_a_row_that_cannot_be_is_refused_by_the_database(
    model: type[Submission | Transfer], values: dict[str, Any], constraint: str
):
    contest("bob", "carol")
    offered()
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        model.objects.update(**values)


def test_an_agent_has_one_undecided_entry_to_a_contest():
    task = contest("bob", "carol")
    carol = entry(task, "carol")
    with (
        pytest.raises(IntegrityError, match="task_submissions_one_pending_each"),
        transaction.atomic(),
    ):
        Submission.objects.filter(pk=carol.pk).update(agent=entry(task, "bob").agent)


def test_a_task_is_offered_to_one_agent_at_a_time():
    transfer = offered().transfers.get()
    transfer.pk = None
    with (
        pytest.raises(IntegrityError, match="task_transfers_one_pending"),
        transaction.atomic(),
    ):
        transfer.save(force_insert=True)


def test_who_handed_in_reported_or_was_offered_something_cannot_be_deleted():
    task = offered()
    actions.checkpoint(task.pk, by=agent("bob"))
    actions.decline_transfer(task.pk, by=agent("carol"))
    actions.give_back(task.pk, by=agent("bob"))
    contest("dave")
    for name in ("bob", "carol", "dave"):
        found = agent(name).agent
        assert found is not None
        with pytest.raises(ProtectedError):
            found.delete()


def test_each_is_named_by_its_number_or_by_what_was_done():
    task = offered()
    actions.checkpoint(task.pk, by=agent("bob"))
    assert str(Checkpoint.objects.get()) == f"checkpoint {Checkpoint.objects.get().pk}"
    assert str(Transfer.objects.get()) == f"transfer {Transfer.objects.get().pk}"
    row = entry(contest("bob"), "bob")
    assert str(row) == f"submission {row.pk}"
    assert str(last_event(task)) == "checkpoint by bob"


def test_the_history_goes_with_its_task():
    task = publish()
    task.delete()
    assert not TaskEvent.objects.exists()
