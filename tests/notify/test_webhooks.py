from __future__ import annotations

import datetime as dt
import json

import pytest
from pytest_django import Settings

from jobs.models import Job
from notify import webhooks
from notify.event import Event
from notify.topics import DEAD_LETTER
from notify.webhooks import DeliverPayload
from tests.notify.factories import TOPIC, EndpointFactory

pytestmark = pytest.mark.django_db

TEXT = 'é😀\u2028\u0001\\ "quoted" </script>'


def event(**values) -> Event:
    return Event(**{"topic": TOPIC, "recipients": [], "title": "It happened", **values})


def test_switched_off_not_one_row_is_written(settings: Settings):
    settings.NOTIFY_WEBHOOK_ENABLED = False
    EndpointFactory()

    assert webhooks.send(event()) == 0
    assert Job.objects.count() == 0


def test_a_topic_that_no_endpoint_has_never_reaches_the_jobs(webhooks_on: Settings):
    EndpointFactory(topics=["test.happened_not", "test"])
    EndpointFactory(topics=[])
    EndpointFactory(enabled=False)

    assert webhooks.send(event()) == 0
    assert Job.objects.count() == 0


def test_what_is_about_webhooks_never_goes_out_whatever_the_lists_say(
    webhooks_on: Settings,
):
    EndpointFactory(topics=[DEAD_LETTER.name])

    assert webhooks.send(event(topic=DEAD_LETTER.name)) == 0
    assert Job.objects.count() == 0


def test_each_endpoint_that_has_the_topic_gets_a_job(webhooks_on: Settings):
    webhooks_on.NOTIFY_WEBHOOK_MAX_ATTEMPTS = 9
    one = EndpointFactory()
    two = EndpointFactory(topics=["test.other", TOPIC])
    EndpointFactory(topics=["test.other"])

    assert webhooks.send(event()) == 2

    jobs = list(Job.objects.order_by("id"))
    assert [job.ref_id for job in jobs] == [str(one.pk), str(two.pk)]
    for job in jobs:
        assert job.type == "webhook.deliver"
        assert job.queue == "webhooks"
        assert job.max_attempts == 9
        assert job.payload["topic"] == TOPIC


def test_neither_url_nor_secret_is_in_the_job(webhooks_on: Settings):
    endpoint = EndpointFactory()
    webhooks.send(event())

    text = json.dumps(Job.objects.get().payload)
    assert "SECRET-TOKEN" not in text
    assert endpoint.signing_secret() not in text


def test_the_body_is_a_json_object_with_the_databases_time(webhooks_on: Settings):
    EndpointFactory()
    webhooks.send(event(body="See.", data={"id": 7}))

    body = json.loads(Job.objects.get().payload["body"])
    assert list(body) == ["topic", "title", "body", "data", "created_at"]
    assert body["topic"] == TOPIC
    assert body["data"] == {"id": 7}
    created = dt.datetime.fromisoformat(body["created_at"])
    ago = Job.objects.get().created_at - created
    assert dt.timedelta(0) <= ago < dt.timedelta(minutes=1)
    assert created.utcoffset() == dt.timedelta(0)


def test_the_jobs_table_gives_back_the_very_bytes(webhooks_on: Settings):
    EndpointFactory()
    told = event(title=TEXT, body=TEXT, data={TEXT: TEXT})
    webhooks.send(told)

    job = Job.objects.get()
    created = dt.datetime.fromisoformat(json.loads(job.payload["body"])["created_at"])
    assert job.payload["body"] == webhooks.body_of(told, created_at=created)


def test_the_payload_keeps_the_body_as_text():
    payload = DeliverPayload(endpoint_id=1, topic=TOPIC, body="{}")

    assert payload.body == "{}"
