from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from jobs.identifiers import uuid7
from jobs.models import Job
from notify.exceptions import RecoveryRefused
from notify.models import AuditEntry, WebhookEndpoint, WebhookRecovery
from notify.recovering import steering
from tests.jobs.factories import ago
from tests.notify.factories import EndpointFactory, RecoveryFactory, delivery_to

pytestmark = pytest.mark.django_db
HOUR = dt.timedelta(hours=1)


def begin(endpoint: WebhookEndpoint) -> WebhookRecovery:
    return steering.begin(
        endpoint, steering.scope(endpoint, HOUR), actor="alice", per_minute=30
    )


@pytest.fixture
def endpoint() -> WebhookEndpoint:
    """One for which two deliveries have just died."""
    made: WebhookEndpoint = EndpointFactory(name="chat")
    for _ in range(2):
        delivery_to(made, dead=True)
    return made


def slices() -> list[Job]:
    return list(Job.objects.filter(type="webhook.recover").order_by("pk"))


def test_what_died_since_is_counted(endpoint: WebhookEndpoint):
    delivery_to(endpoint, dead=True, completed_at=ago(hours=2))
    delivery_to(endpoint, completed=True)

    assert steering.scope(endpoint, HOUR).count == 2
    assert steering.scope(endpoint, ago(hours=3)).count == 3


def test_it_begins_with_a_row_a_job_and_an_entry_in_the_audit(
    endpoint: WebhookEndpoint,
):
    recovery = begin(endpoint)

    recovery.refresh_from_db()
    assert (recovery.counted, recovery.per_minute) == (2, 30)
    assert recovery.until - recovery.since == HOUR
    [job] = slices()
    assert (recovery.job_id, job.ref_id) == (job.pk, str(endpoint.pk))
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action) == ("alice", "webhook.recovery_begun")
    assert entry.target == "webhook:chat"
    assert entry.data["count"] == 2


def test_there_is_one_at_a_time_of_an_endpoint(endpoint: WebhookEndpoint):
    recovery = begin(endpoint)
    with (
        pytest.raises(RecoveryRefused, match="a recovery of chat is running already"),
        transaction.atomic(),
    ):
        begin(endpoint)

    steering.cancel([recovery.pk], actor="alice")

    assert begin(endpoint).pk != recovery.pk


def test_where_nothing_died_there_is_nothing_to_begin():
    with pytest.raises(RecoveryRefused, match="nothing that was to go to quiet"):
        begin(EndpointFactory(name="quiet"))
    assert slices() == []


def test_resuming_has_another_job_go_on(endpoint: WebhookEndpoint):
    recovery = begin(endpoint)

    assert str(steering.pause([recovery.pk], actor="bob")) == "1 paused"
    assert str(steering.resume([recovery.pk], actor="bob")) == "1 resumed"

    recovery.refresh_from_db()
    first, second = slices()
    assert recovery.job_id == second.pk != first.pk
    turns = AuditEntry.objects.filter(actor="bob").values_list("action", flat=True)
    assert set(turns) == {"webhook.recovery_paused", "webhook.recovery_resumed"}


@pytest.mark.parametrize(
    ("turn", "state", "reason"),
    [
        (steering.pause, "paused", "it is paused"),
        (steering.pause, "finished", "it is finished"),
        (steering.resume, "cancelled", "it is cancelled"),
        (steering.cancel, "finished", "it is finished"),
    ],
    ids=["pause paused", "pause finished", "resume cancelled", "cancel finished"],
)
def test_what_does_not_apply_changes_nothing(turn, state: str, reason: str):
    recovery = RecoveryFactory(state=state)

    result = turn([recovery.pk], actor="alice")

    assert [skip.reason for skip in result.skipped] == [reason]
    recovery.refresh_from_db()
    assert recovery.state == state
    assert not AuditEntry.objects.exists()


def test_one_that_does_not_exist_is_named():
    assert str(steering.pause([0], actor="alice")).endswith("no such recovery")


def test_one_whose_job_is_gone_can_be_resumed(endpoint: WebhookEndpoint):
    recovery = begin(endpoint)
    recovery.refresh_from_db()
    assert not steering.is_stranded(recovery)
    assert "it is running" in str(steering.resume([recovery.pk], actor="alice"))

    Job.objects.filter(type="webhook.recover").delete()

    assert steering.is_stranded(recovery)
    assert str(steering.resume([recovery.pk], actor="alice")) == "1 resumed"
    recovery.refresh_from_db()
    assert not steering.is_stranded(recovery)


def test_only_the_recovery_whose_job_died_is_paused():
    theirs, other = RecoveryFactory(job_id=uuid7()), RecoveryFactory(job_id=uuid7())

    steering.stop(theirs.job_id, "x" * 500)

    theirs.refresh_from_db()
    other.refresh_from_db()
    assert (theirs.state, other.state) == ("paused", "running")
    assert theirs.reason.startswith("its job was given up: x")


@pytest.mark.django_db(transaction=True)
def test_one_that_a_worker_has_locked_is_not_waited_for():
    recovery = RecoveryFactory(job_id=uuid7())

    def stop() -> None:
        try:
            with transaction.atomic():
                steering.stop(recovery.job_id, "lost")
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        WebhookRecovery.objects.select_for_update().get(pk=recovery.pk)
        threads.submit(stop).result(20)

    recovery.refresh_from_db()
    assert recovery.state == "running"
    assert steering.is_stranded(recovery)
