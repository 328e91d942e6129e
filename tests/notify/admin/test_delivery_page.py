from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone
from pytest_django import Settings

from jobs.models import Job
from notify.admin.delivery_page import ATTEMPTS_SHOWN, Section, sections
from notify.encryption import new_key
from notify.models import WebhookDelivery, WebhookEndpoint
from tests.notify.factories import (
    SECRET,
    AttemptFactory,
    EndpointFactory,
    delivery_to,
)

pytestmark = pytest.mark.django_db


def section(delivery: WebhookDelivery, name: str) -> Section:
    [found] = [
        each
        for each in sections(delivery, may_resend=True, may_see_url=False)
        if each.name == name
    ]
    return found


def test_one_that_was_never_tried_says_so():
    attempts = section(delivery_to(EndpointFactory()), "attempts")

    assert (attempts.text, attempts.rows) == ("None yet.", [])


def test_the_newest_attempts_come_first_and_are_not_too_many():
    delivery = delivery_to(EndpointFactory(), dead=True)
    for number in range(1, ATTEMPTS_SHOWN + 2):
        AttemptFactory(job_id=delivery.pk, number=number)

    attempts = section(delivery, "attempts")

    numbers = [row[1] for row in attempts.rows]
    assert numbers == list(range(ATTEMPTS_SHOWN + 1, 1, -1))


def test_each_cell_knows_its_columns_name():
    delivery = delivery_to(EndpointFactory(), dead=True)
    AttemptFactory(
        job_id=delivery.pk, status=204, duration=dt.timedelta(milliseconds=12)
    )

    [line] = section(delivery, "attempts").lines

    assert dict(line)["answer"] == "HTTP 204"
    assert dict(line)["milliseconds"] == "12"


def test_it_begins_with_what_happened_in_plain_words():
    delivery = delivery_to(EndpointFactory(), dead=True)
    AttemptFactory(job_id=delivery.pk, status=503, finished_at=timezone.now())
    AttemptFactory(
        job_id=delivery.pk,
        status=404,
        cause="HTTP 404 Not Found",
        verdict="permanent",
        finished_at=timezone.now(),
    )

    first, *_ = sections(delivery, may_resend=True, may_see_url=False)

    assert "The receiver knows nothing at that address (HTTP 404)." in first.text
    assert "Then resend it." in first.text


def test_one_that_has_died_is_not_said_to_be_tried_again_by_itself():
    dead, waiting = (
        delivery_to(EndpointFactory(), dead=True),
        delivery_to(EndpointFactory(), later=True),
    )
    for delivery in (dead, waiting):
        AttemptFactory(
            job_id=delivery.pk,
            status=503,
            verdict="retry",
            finished_at=timezone.now(),
        )

    assert "Then resend it." in section(dead, "explanation").text
    assert "tried again by itself" in section(waiting, "explanation").text


def test_one_that_cannot_be_resent_is_not_said_to_be():
    cancelled = delivery_to(EndpointFactory(), cancelled=True)
    AttemptFactory(
        job_id=cancelled.pk, status=503, verdict="retry", finished_at=timezone.now()
    )

    assert "esend" not in section(cancelled, "explanation").text


def test_one_whose_endpoint_was_deleted_says_so():
    delivery = delivery_to(EndpointFactory(), dead=True)
    AttemptFactory(
        job_id=delivery.pk, status=503, verdict="retry", finished_at=timezone.now()
    )
    WebhookEndpoint.objects.all().delete()

    text = section(delivery, "explanation").text

    assert "Its endpoint was deleted: there is nowhere to send it." in text
    assert "esend" not in text


def test_one_that_waits_says_for_what(webhooks_on: Settings):
    endpoint = EndpointFactory(breaker="open", breaker_reason="HTTP 503")

    text = section(delivery_to(endpoint, later=True), "explanation").text

    assert "It waits: the endpoint&#x27;s breaker is open: HTTP 503." in text


@pytest.mark.parametrize("ref_id", [None, "", "x", "²", "12345"], ids=repr)
def test_one_that_names_no_endpoint_has_a_page_all_the_same(ref_id: str | None):
    delivery = delivery_to(EndpointFactory(), dead=True, ref_id=ref_id)
    AttemptFactory(job_id=delivery.pk, finished_at=timezone.now(), verdict="completed")

    assert section(delivery, "explanation").text


def test_a_payload_that_is_no_deliverys_shows_as_it_is():
    delivery = delivery_to(EndpointFactory(), dead=True, payload={"endpoint_id": "x"})

    assert "endpoint_id" in section(delivery, "body").text


def test_a_body_that_is_no_json_shows_as_it_is():
    delivery = delivery_to(EndpointFactory(), dead=True, body="<not json>")

    assert "&lt;not json&gt;" in section(delivery, "body").text
    assert Job.objects.count() == 1


def by_hand(delivery: WebhookDelivery, *, may_see_url: bool) -> str:
    found = sections(delivery, may_resend=True, may_see_url=may_see_url)
    return "".join(each.text for each in found if each.name == "by-hand")


def test_it_can_be_sent_by_hand_with_the_url_and_the_headers_that_its_reader_may_see():
    endpoint = EndpointFactory()
    endpoint.set_headers({"X-Team": "a-value"})
    endpoint.save()
    delivery = delivery_to(endpoint, dead=True, body='{"token":"hush"}')

    whole = by_hand(delivery, may_see_url=True)
    without = by_hand(delivery, may_see_url=False)

    for text in (str(delivery.pk), "hush", "X-ACW-Signature"):
        assert text in whole
        assert text in without
    for text in ("SECRET-TOKEN", "HEADER_X_TEAM"):
        assert text in whole
        assert text not in without
    assert "a-value" not in whole
    assert SECRET not in whole


def test_who_may_not_resend_it_gets_no_command():
    delivery = delivery_to(EndpointFactory(), dead=True, body='{"token":"hush"}')

    found = sections(delivery, may_resend=False, may_see_url=False)

    assert "hush" not in "".join(each.text for each in found)


def test_headers_that_cannot_be_read_keep_nobody_from_the_page(settings: Settings):
    endpoint = EndpointFactory()
    endpoint.set_headers({"X-Team": "a-value"})
    endpoint.save()
    settings.ACW_ENCRYPTION_KEYS = [new_key()]

    assert by_hand(delivery_to(endpoint, dead=True), may_see_url=True)
