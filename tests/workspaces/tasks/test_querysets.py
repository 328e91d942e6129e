from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.workspaces.tasks.market import agent, held, offered, publish, reviewing
from workspaces.tasks import actions
from workspaces.tasks.models import Task

pytestmark = pytest.mark.django_db


def test_live_are_those_that_have_not_ended():
    opened, taken, handed_in, ended = publish(), held(), reviewing(), publish()
    actions.cancel(ended.pk, by=agent("alice"))
    assert set(Task.objects.live()) == {opened, taken, handed_in}


def test_the_end_of_a_pending_transfer_comes_with_the_task():
    pending, declined, alone = offered(), offered(), held()
    actions.decline_transfer(declined.pk, by=agent("carol"))
    ends = {task.pk: task.transfer_until for task in Task.objects.with_transfers()}
    assert ends == {
        pending.pk: pending.transfers.get().expires_at,
        declined.pk: None,
        alone.pk: None,
    }


def test_with_people_no_name_costs_a_query():
    held("bob")
    held("service:bot")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        names = {
            (str(task.publisher), str(task.holder))
            for task in Task.objects.with_people()
        }
    assert names == {("alice", "bob"), ("alice", "service:bot")}
    assert len(queries) == 1
