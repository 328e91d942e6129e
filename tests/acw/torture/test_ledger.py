"""What handlers note is looked at in ``test_handlers``, in a process that has them; here, what is the ledger's alone."""

from __future__ import annotations

import datetime as dt
import uuid

import psycopg
import pytest

from acw.torture import ledger
from jobs.connection import QueueConnection
from jobs.context import JobContext
from jobs.exceptions import LeaseLost


class Away(QueueConnection):
    """A database that never answers."""

    tries = 0

    def execute(self, query: object, parameters: object) -> list[object]:
        Away.tries += 1
        raise psycopg.OperationalError("away")


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> JobContext:
    monkeypatch.setattr(ledger._mine, "connection", Away(), raising=False)
    monkeypatch.setattr(Away, "tries", 0)
    return JobContext(
        job_id=uuid.uuid4(),
        type="torture.quick",
        ref_id=None,
        queue="default",
        attempt=1,
        max_attempts=1,
        lease_seq=1,
        enqueued_at=dt.datetime.now(dt.UTC),
    )


def test_an_execution_that_cannot_be_noted_fails(
    context: JobContext, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ledger, "PATIENCE", 0.25)
    with (
        pytest.raises(psycopg.OperationalError, match="away"),
        ledger.execution(context),
    ):
        pytest.fail("nothing is executed that is not noted")
    assert Away.tries > 1


def test_an_execution_that_has_lost_its_lease_is_not_held_up_by_an_outage(
    context: JobContext,
):
    context.notify_lease_lost()
    with pytest.raises(LeaseLost), ledger.execution(context):
        pytest.fail("nothing is executed that is not noted")
    assert Away.tries == 1
