from __future__ import annotations

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import AbstractBaseUser
from django.db import connection, transaction
from django.db.models.functions import Now

from jobs.testing import wait_until
from notify import inapp
from notify.event import Event, Group
from notify.models import Notification
from tests.jobs.support import somebody_waits_for_a_lock
from tests.notify.factories import TOPIC, UserFactory

WINDOW = dt.timedelta(minutes=15)
PATIENCE = 20


def grouped(*users: AbstractBaseUser, key: str = "chat", **values: Any) -> Event:
    group = Group(key=key, window=WINDOW, title=f"things of {key}", url=f"/{key}/")
    return Event(
        **{
            "topic": TOPIC,
            "recipients": users,
            "title": f"A thing of {key}",
            "body": "the first",
            "data": {"url": "/one/"},
            "group": group,
            **values,
        }
    )


@pytest.mark.django_db
def test_each_recipient_has_a_row_written_in_one_statement(django_assert_num_queries):
    users = UserFactory.create_batch(3)
    event = Event(
        topic=TOPIC, recipients=users, title="It happened", body="See.", data={"id": 7}
    )

    with django_assert_num_queries(1):
        count = inapp.send(event)

    assert count == 3
    for user in users:
        [notification] = Notification.objects.of(user)
        assert notification.topic == TOPIC
        assert notification.title == "It happened"
        assert notification.body == "See."
        assert notification.data == {"id": 7}
        assert (notification.count, notification.group_key) == (1, "")
        assert notification.read_at is None
        assert notification.created_at is not None


@pytest.mark.django_db
def test_without_recipients_nothing_is_written():
    assert inapp.send(Event(topic=TOPIC, recipients=[], title="It happened")) == 0
    assert inapp.send(grouped()) == 0
    assert not Notification.objects.exists()


@pytest.mark.django_db
def test_the_first_of_a_group_is_told_as_it_is():
    user = UserFactory()

    assert inapp.send(grouped(user)) == 1

    [told] = Notification.objects.of(user)
    assert (told.title, told.body, told.count) == ("A thing of chat", "the first", 1)
    assert told.link == "/one/"


@pytest.mark.django_db
def test_a_further_one_makes_it_grow_and_unread_and_lead_to_all_of_them():
    reader, other = UserFactory.create_batch(2)
    inapp.send(grouped(reader))
    Notification.objects.of(reader).mark_read()

    inapp.send(grouped(reader, other, body="the second", data={"id": 2}))
    inapp.send(grouped(reader, body="the third"))

    [told] = Notification.objects.of(reader)
    assert (told.title, told.body, told.count) == ("3 things of chat", "the third", 3)
    assert told.link == "/chat/"
    assert told.read_at is None
    [first] = Notification.objects.of(other)
    assert (first.title, first.count) == ("A thing of chat", 1)


@pytest.mark.django_db
def test_groups_are_kept_apart_and_end_with_their_window():
    user = UserFactory()
    inapp.send(grouped(user))
    inapp.send(grouped(user, key="mail"))
    Notification.objects.filter(group_key="chat").update(created_at=Now() - WINDOW)

    inapp.send(grouped(user))
    inapp.send(grouped(user))

    told = Notification.objects.of(user).order_by("pk")
    assert list(told.values_list("group_key", "count")) == [
        ("chat", 1),
        ("mail", 1),
        ("chat", 2),
    ]


@pytest.mark.django_db
def test_many_of_a_group_are_one_row_for_each():
    users = UserFactory.create_batch(2)

    for _ in range(100):
        inapp.send(grouped(*users))

    assert list(Notification.objects.values_list("count", "title")) == [
        (100, "100 things of chat")
    ] * len(users)


def _send_and_hold(
    event: Event, sent: threading.Event, go: threading.Event, *then: Event
) -> None:
    try:
        with transaction.atomic():
            inapp.send(event)
            sent.set()
            assert go.wait(PATIENCE)
            for further in then:
                inapp.send(further)
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_two_at_once_make_one_row():
    user = UserFactory()
    sent, go, ignored = threading.Event(), threading.Event(), threading.Event()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(_send_and_hold, grouped(user), sent, go)
        assert sent.wait(PATIENCE)
        second = threads.submit(_send_and_hold, grouped(user), ignored, go)
        wait_until(somebody_waits_for_a_lock, what="the second waits for the first")
        go.set()
        first.result(PATIENCE)
        second.result(PATIENCE)

    assert Notification.objects.get().count == 2


@pytest.mark.django_db(transaction=True)
def test_transactions_that_tell_of_several_groups_in_other_orders_do_not_lock_each_other_out():
    user = UserFactory()
    inapp.send(grouped(user, key="chat"))
    inapp.send(grouped(user, key="mail"))
    chat, mail = grouped(user, key="chat"), grouped(user, key="mail")
    sent, go, ignored = threading.Event(), threading.Event(), threading.Event()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(_send_and_hold, chat, sent, go, mail)
        assert sent.wait(PATIENCE)
        second = threads.submit(_send_and_hold, mail, ignored, go, chat)
        wait_until(somebody_waits_for_a_lock, what="the second waits for the first")
        go.set()
        first.result(PATIENCE)
        second.result(PATIENCE)

    assert set(Notification.objects.values_list("group_key", "count")) == {
        ("chat", 3),
        ("mail", 3),
    }


@pytest.mark.django_db(transaction=True)
def test_nobody_is_waited_for_who_has_a_notification_locked():
    user = UserFactory()
    inapp.send(grouped(user))
    sent, go = threading.Event(), threading.Event()
    go.set()
    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        Notification.objects.all().mark_read()
        threads.submit(_send_and_hold, grouped(user), sent, go).result(PATIENCE)

    read, unread = Notification.objects.order_by("pk")
    assert (read.count, unread.count) == (1, 1)
    assert unread.read_at is None
