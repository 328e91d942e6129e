from __future__ import annotations

import pytest

from jobs.identifiers import uuid7
from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from notify import superseding, topics
from notify.models import WebhookAttempt
from tests.notify import sinks
from tests.notify.factories import EndpointFactory
from tests.notify.flow import run_again_now, statuses, tell
from tests.notify.sinks import Sink
from workspaces.topics import PRUNE_PENDING

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("webhooks_on")]

ABOUT = "test.about"


@pytest.fixture(autouse=True)
def topic_with_a_subject() -> None:
    topics.define(ABOUT, title="x", description="x", subject="thing_id")


def test_a_later_event_about_the_same_takes_the_place_of_one_that_waits(sink: Sink):
    EndpointFactory(url=sink.url, topics=[ABOUT, "test.happened"])
    tell(topic=ABOUT, thing_id=1)
    tell(topic=ABOUT, thing_id=2)
    tell(thing_id=1)
    tell(topic=ABOUT, thing_id=1)

    first, other, another_topic, later = Job.objects.order_by("id")
    assert first.status == Status.CANCELLED
    assert first.completed_at is not None
    assert first.last_error == f"superseded by {later.pk}"
    row = WebhookAttempt.objects.get()
    assert (row.job_id, row.verdict) == (first.pk, "superseded")
    assert (row.superseded_by, row.slot) == (later.pk, None)
    assert row.finished_at is not None
    for job in (other, another_topic, later):
        assert job.status == Status.PENDING

    run_due_jobs()
    assert len(sink.requests) == 3


def test_the_later_of_two_that_come_at_once_stays_whichever_is_first_to_look():
    endpoint = EndpointFactory(topics=[ABOUT])
    before = uuid7()
    tell(topic=ABOUT, thing_id=1)

    superseding.supersede(
        endpoint.pk, topic=topics.topic(ABOUT), subject="1", by=before
    )

    assert statuses() == [(Status.PENDING, 0)]


def test_each_endpoint_has_its_own(sink: Sink):
    EndpointFactory(url=sink.url, topics=[ABOUT])
    tell(topic=ABOUT, thing_id=1)
    EndpointFactory(url=sink.url, topics=[ABOUT])
    tell(topic=ABOUT, thing_id=1)

    assert [s for s, _ in statuses()] == [Status.CANCELLED] + [Status.PENDING] * 2


def test_what_failed_and_waits_for_another_try_is_old_news_too(sink: Sink):
    sink.behave = sinks.in_turn(sinks.answer(500), sinks.answer(204))
    EndpointFactory(url=sink.url, topics=[ABOUT])
    tell(topic=ABOUT, thing_id=1)
    run_due_jobs()
    tell(topic=ABOUT, thing_id=1)
    run_again_now()

    assert statuses() == [(Status.CANCELLED, 1), (Status.COMPLETED, 1)]
    assert len(sink.requests) == 2


def test_what_is_under_way_is_left_alone():
    endpoint = EndpointFactory(topics=[ABOUT])
    tell(topic=ABOUT, thing_id=1)
    Job.objects.update(status=Status.RUNNING, lease_until="2999-01-01T00:00:00Z")

    by = uuid7()
    topic = topics.topic(ABOUT)
    assert not superseding.supersede(endpoint.pk, topic=topic, subject="1", by=by)
    assert Job.objects.get().status == Status.RUNNING


def test_an_event_that_says_nothing_of_its_subject_supersedes_nothing():
    EndpointFactory(topics=[ABOUT])
    for data in (
        {},
        {},
        {"thing_id": None},
        {"thing_id": [1]},
        {"thing_id": "x" * 201},
    ):
        tell(topic=ABOUT, **data)
    tell(topic=ABOUT, thing_id="x" * 201)

    assert {s for s, _ in statuses()} == {Status.PENDING}


def test_a_worktree_is_what_the_warning_of_its_removal_is_about():
    assert superseding.subject_of(PRUNE_PENDING, {"worktree_id": 7}) == "7"
