from __future__ import annotations

import datetime as dt

import pytest
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from pytest_django.asserts import assertContains, assertNotContains

from notify import audit
from tests.notify.factories import (
    AttemptFactory,
    NotificationFactory,
)

pytestmark = pytest.mark.django_db


def page(model: str, *args: object, verb: str = "changelist") -> str:
    return reverse(f"admin:notify_{model}_{verb}", args=args)


def a_row_of(model: str) -> Model:
    row: Model
    match model:
        case "notification":
            row = NotificationFactory()
        case "webhookattempt":
            row = AttemptFactory()
        case _:
            row = audit.record("alice", "x.y", target="z")
    return row


def test_every_list_and_every_page_of_a_row_opens(admin: Client):
    attempt = AttemptFactory(duration=dt.timedelta(milliseconds=12.4))
    rows = {
        "notification": NotificationFactory(data={"id": "<b>"}),
        "webhookendpoint": attempt.endpoint,
        "webhookattempt": attempt,
        "auditentry": audit.record("alice", "x.y", target="z", data={"a": "<b>"}),
    }
    for model, row in rows.items():
        assertContains(admin.get(page(model)), str(row.pk))
        shown = admin.get(page(model, row.pk, verb="change"))
        assert shown.status_code == 200
        assertNotContains(shown, "<b>")


@pytest.mark.parametrize("model", ["notification", "webhookattempt", "auditentry"])
def test_what_the_program_writes_nobody_adds_or_changes(admin: Client, model: str):
    row = a_row_of(model)

    assert admin.get(page(model, verb="add")).status_code == 403
    changed = admin.post(page(model, row.pk, verb="change"), {"title": "x"})
    assert changed.status_code == 403


@pytest.mark.parametrize("model", ["webhookattempt", "auditentry"])
def test_records_are_not_deleted(admin: Client, model: str):
    row = a_row_of(model)

    deleted = admin.post(page(model, row.pk, verb="delete"), {"post": "yes"})

    assert deleted.status_code == 403


def test_a_user_who_was_told_something_can_be_deleted(admin: Client):
    user = NotificationFactory().user

    gone = admin.post(
        reverse("admin:auth_user_delete", args=[user.pk]), {"post": "yes"}
    )

    assert gone.status_code == 302
    assert not type(user).objects.filter(pk=user.pk).exists()


def test_a_notification_s_words_turn_nothing_around(admin: Client):
    row = NotificationFactory(title="exe.\u202egnp", body="one\n\u202etwo\x1b[31m")
    assertContains(admin.get(page("notification")), "exe.\ufffdgnp")
    shown = admin.get(page("notification", row.pk, verb="change")).content.decode()
    assert "one\n\ufffdtwo\ufffd[31m" in shown


def test_notifications_are_put_in_the_order_of_their_titles(admin: Client):
    for title in ("b", "c", "a"):
        NotificationFactory(title=title)
    listed = admin.get(page("notification"), {"o": "4"}).context["cl"].result_list
    assert [row.title for row in listed] == ["a", "b", "c"]
