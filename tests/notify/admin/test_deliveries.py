from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django.asserts import assertContains, assertNotContains

from jobs.models import Status
from notify.models import AuditEntry, WebhookDelivery
from tests.jobs.factories import JobFactory
from tests.notify.admin.pages import client_with
from tests.notify.factories import AttemptFactory, EndpointFactory, delivery_to

pytestmark = pytest.mark.django_db
LIST = "/admin/notify/webhookdelivery/"


def page(delivery: WebhookDelivery, verb: str = "change") -> str:
    return reverse(f"admin:notify_webhookdelivery_{verb}", args=[delivery.pk])


def rows(response: Any) -> list[Any]:
    return [delivery.pk for delivery in response.context["cl"].result_list]


def failed(delivery: WebhookDelivery, **values: Any) -> None:
    AttemptFactory(
        **{
            "job_id": delivery.pk,
            "verdict": "retry",
            "finished_at": timezone.now(),
            "cause": "HTTP 503 Service Unavailable",
            "duration": dt.timedelta(milliseconds=250),
            "dns_ms": 1.25,
            "answer_ms": 240,
            **values,
        }
    )


def test_the_list_has_endpoint_topic_status_and_the_last_answer(admin: Client):
    JobFactory()
    delivery = delivery_to(EndpointFactory(name="chat"), dead=True, max_attempts=6)
    failed(delivery, cause="an earlier one")
    failed(delivery)
    gone = EndpointFactory()
    orphan = delivery_to(gone)
    gone.delete()

    shown = admin.get(LIST)

    assert rows(shown) == [orphan.pk, delivery.pk]
    for text in (
        ">chat<",
        ">test.happened<",
        ">dead</span>",
        ">5/6<",
        ">HTTP 503 Service Unavailable<",
        ">deleted<",
    ):
        assertContains(shown, text)
    assertNotContains(shown, "an earlier one")


def test_the_list_takes_as_many_queries_for_many_as_for_one(admin: Client):
    endpoint = EndpointFactory()
    delivery_to(endpoint, dead=True)
    with CaptureQueriesContext(connection) as for_one:
        admin.get(LIST)
    for _ in range(5):
        delivery_to(endpoint, dead=True)
    with CaptureQueriesContext(connection) as for_many:
        admin.get(LIST)

    assert len(for_many) == len(for_one)
    counting = [query["sql"] for query in for_many if "COUNT(*)" in query["sql"]]
    assert counting
    # What is shown of the rows is not asked for while they are counted.
    assert not [sql for sql in counting if "webhook_attempts" in sql]


def test_a_delivery_is_found_by_its_id_alone(admin: Client):
    wanted, _ = (delivery_to(EndpointFactory()) for _ in range(2))

    assert rows(admin.get(LIST, {"q": f" {wanted.pk} "})) == [wanted.pk]
    assert rows(admin.get(LIST, {"q": "test.happened"})) == []
    assert admin.get(LIST, {"payload__body__contains": "x"}).status_code == 400


def test_its_page_shows_each_attempt_with_its_phases_and_the_body(admin: Client):
    delivery = delivery_to(
        EndpointFactory(name="chat"), dead=True, body='{"title":"<b>é","token":"hush"}'
    )
    failed(delivery, peer="203.0.113.7", excerpt="<i>busy</i>")
    AttemptFactory(job_id=delivery.pk, number=2)

    shown = admin.get(page(delivery))

    for text in (
        ">chat</a>",
        str(delivery.pk),
        "looking up 1.2, answer 240.0",
        "203.0.113.7",
        "HTTP 503 Service Unavailable",
        "&lt;i&gt;busy&lt;/i&gt;",
        ">unknown</span>",
        "&quot;title&quot;: &quot;&lt;b&gt;é&quot;",
    ):
        assertContains(shown, text)
    assertContains(shown, "SECRET-TOKEN")
    viewer = client_with("view_webhookdelivery").get(page(delivery))
    assertNotContains(viewer, "SECRET-TOKEN")
    assertNotContains(viewer, "hush")


def test_one_that_was_superseded_leads_to_the_later_one(admin: Client):
    endpoint = EndpointFactory()
    old, new = delivery_to(endpoint, cancelled=True), delivery_to(endpoint)
    failed(old, verdict="superseded", superseded_by=new.pk)

    shown = admin.get(page(old))

    assertContains(shown, f'by <a href="{page(new)}">a later event</a>')
    assertContains(shown, ">superseded</span>")
    assertNotContains(shown, ">Resend</button>")


@pytest.mark.parametrize("state", ["dead", "completed"])
def test_one_is_resent_by_its_button(admin: Client, state: str):
    delivery = delivery_to(EndpointFactory(), **{state: True})
    assertContains(admin.get(page(delivery)), ">Resend</button>")

    told = admin.post(page(delivery, "resend"), follow=True)

    assertContains(told, "1 resent")
    delivery.refresh_from_db()
    assert delivery.status == Status.PENDING
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action) == ("alice", "job.repeat")


def test_those_that_are_selected_are_resent_and_the_others_named(admin: Client):
    endpoint = EndpointFactory()
    deliveries = [
        delivery_to(endpoint, dead=True),
        delivery_to(endpoint, running=True),
        delivery_to(endpoint, dead=True),
    ]

    told = admin.post(
        LIST,
        {
            "action": "resend",
            "_selected_action": [delivery.pk for delivery in deliveries[:2]],
        },
        follow=True,
    )

    assertContains(told, "1 resent, 1 skipped: only dead and completed jobs")
    deliveries[2].refresh_from_db()
    assert deliveries[2].status == Status.DEAD


def test_one_that_waits_is_cancelled_by_its_button(admin: Client):
    delivery = delivery_to(EndpointFactory())
    assertNotContains(admin.get(page(delivery)), ">Resend</button>")

    assertContains(admin.post(page(delivery, "cancel"), follow=True), "1 cancelled")

    delivery.refresh_from_db()
    assert delivery.status == Status.CANCELLED


def test_looking_resending_and_cancelling_are_different_permissions():
    dead, waiting = (
        delivery_to(EndpointFactory(), dead=True),
        delivery_to(EndpointFactory()),
    )
    viewer = client_with("view_webhookdelivery")
    assertNotContains(viewer.get(page(dead)), ">Resend</button>")
    assert viewer.post(page(dead, "resend")).status_code == 403
    assert viewer.post(page(waiting, "cancel")).status_code == 403

    resender = client_with("view_webhookdelivery", "resend_webhookdelivery")
    assert resender.get(page(dead, "resend")).status_code == 405
    assert resender.post(page(dead, "resend")).status_code == 302
    assert resender.post(page(waiting, "cancel")).status_code == 403
    canceller = client_with("view_webhookdelivery", "cancel_job")
    assert canceller.post(page(waiting, "cancel")).status_code == 302

    assert client_with("view_job").get(page(dead)).status_code == 403
    assert User.objects.filter(is_superuser=True).count() == 0
    assert Permission.objects.filter(codename="resend_webhookdelivery").exists()


def test_another_job_has_no_page_here(admin: Client):
    job = JobFactory(dead=True)

    gone = admin.post(reverse("admin:notify_webhookdelivery_resend", args=[job.pk]))

    assert gone.status_code == 404
    job.refresh_from_db()
    assert job.status == Status.DEAD


def test_nobody_adds_changes_or_deletes_one(admin: Client):
    delivery = delivery_to(EndpointFactory())

    assert admin.get(f"{LIST}add/").status_code == 403
    assert admin.post(page(delivery), {"type": "x"}).status_code == 403
    assert admin.post(page(delivery, "delete"), {"post": "yes"}).status_code == 403
