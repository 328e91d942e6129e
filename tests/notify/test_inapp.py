from __future__ import annotations

import pytest

from notify import inapp
from notify.event import Event
from notify.models import Notification
from tests.notify.factories import TOPIC, UserFactory

pytestmark = pytest.mark.django_db


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
        assert notification.read_at is None
        assert notification.created_at is not None


def test_without_recipients_nothing_is_written():
    assert inapp.send(Event(topic=TOPIC, recipients=[], title="It happened")) == 0
    assert not Notification.objects.exists()
