from __future__ import annotations

import logging

import pytest
from pytest_django import Settings

from jobs.enqueue import enqueue
from jobs.finisher import announce_death
from jobs.models import Job, Status
from jobs.signals import operator_acted
from jobs.testing import run_due_jobs
from notify.dispatch import Event, dispatch
from notify.models import AuditEntry, Notification, WebhookRecovery
from notify.webhooks import DeliverPayload
from tests.notify import sinks
from tests.notify.factories import (
    SECRET,
    TOPIC,
    AdminFactory,
    EndpointFactory,
    RecoveryFactory,
    UserFactory,
)
from tests.notify.sinks import Sink

pytestmark = pytest.mark.django_db


def test_a_delivery_given_up_is_audited_and_told_to_every_admin_and_no_receiver(
    webhooks_on: Settings, sink: Sink, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    admins = AdminFactory.create_batch(2)
    UserFactory(is_staff=True)
    AdminFactory(is_active=False)
    sink.behave = sinks.answer(404)
    EndpointFactory(name="chat", url=sink.url, topics=[TOPIC, "webhook.dead_letter"])
    dispatch(Event(topic=TOPIC, recipients=[], title="It happened"))

    [job] = run_due_jobs()

    assert job.status == Status.DEAD
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action) == ("system", "webhook.dead_letter")
    assert entry.target == f"job:{job.pk}"
    assert entry.data["endpoint"] == "chat"
    assert "HTTP 404" in entry.data["error"]

    notifications = Notification.objects.all()
    assert {notification.user for notification in notifications} == set(admins)
    for notification in notifications:
        assert notification.topic == "webhook.dead_letter"
        assert notification.title == f"Webhook to chat not delivered: {TOPIC}"
        assert "HTTP 404" in notification.body
        assert notification.link == f"/admin/notify/webhookdelivery/{job.pk}/change/"

    assert Job.objects.count() == 1
    assert "webhook.dead_letter" in caplog.text
    kept = repr([*AuditEntry.objects.values(), *Notification.objects.values()])
    assert "SECRET-TOKEN" not in kept + caplog.text
    assert SECRET not in kept + caplog.text


def test_dead_letters_of_one_endpoint_are_one_notification_that_counts_and_lists_them():
    AdminFactory()
    chat, mail = EndpointFactory(name="chat"), EndpointFactory(name="mail")

    for endpoint in (chat, mail, chat, chat):
        payload = DeliverPayload(endpoint_id=endpoint.pk, topic=TOPIC, body="{}")
        job = enqueue("webhook.deliver", payload, ref_id=endpoint.pk)
        announce_death(job.pk, "HTTP 404")

    assert AuditEntry.objects.filter(action="webhook.dead_letter").count() == 4
    of_chat, of_mail = Notification.objects.order_by("pk")
    assert of_chat.title == "3 webhooks to chat not delivered"
    assert of_chat.link == (
        f"/admin/notify/webhookdelivery/?status=dead&endpoint={chat.pk}"
    )
    assert of_mail.title == f"Webhook to mail not delivered: {TOPIC}"


def test_the_death_of_a_recoverys_job_pauses_the_recovery():
    endpoint = EndpointFactory()
    recovery = RecoveryFactory(endpoint=endpoint)
    job = enqueue("webhook.recover", {"recovery_id": recovery.pk})
    WebhookRecovery.objects.update(job_id=job.pk)

    announce_death(job.pk, "ValueError: broken")

    recovery.refresh_from_db()
    assert recovery.state == "paused"
    assert recovery.reason == "its job was given up: ValueError: broken"
    assert not Notification.objects.exists()


def test_the_death_of_another_job_is_not_told():
    AdminFactory()
    job = Job.objects.create(type="test.noop")

    announce_death(job.pk, "it failed")

    assert not AuditEntry.objects.exists()
    assert not Notification.objects.exists()


@pytest.mark.parametrize("payload", [{}, {"endpoint_id": "x", "topic": 3}], ids=repr)
def test_a_delivery_that_nobody_can_read_is_told_all_the_same(payload):
    AdminFactory()
    job = Job.objects.create(type="webhook.deliver", payload=payload)

    announce_death(job.pk, "payload: cannot be decoded")

    assert AuditEntry.objects.get().data["endpoint"] == "a deleted endpoint"
    assert "a deleted endpoint" in Notification.objects.get().title


def test_a_delivery_to_an_endpoint_that_is_gone_is_told_all_the_same():
    AdminFactory()
    payload = DeliverPayload(endpoint_id=12345, topic=TOPIC, body="{}")
    job = enqueue("webhook.deliver", payload)

    announce_death(job.pk, "attempts used up")

    assert TOPIC in Notification.objects.get().title


def test_what_an_operator_does_to_the_queue_is_audited():
    operator_acted.send(
        sender=Job, actor="alice", action="job.retry", target="job:1", data={"n": 1}
    )

    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.target) == ("alice", "job.retry", "job:1")
    assert entry.data == {"n": 1}
