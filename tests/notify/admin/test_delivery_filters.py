from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from notify import topics
from notify.admin import delivery_filters
from tests.notify.factories import TOPIC, EndpointFactory, delivery_to

pytestmark = pytest.mark.django_db
LIST = "/admin/notify/webhookdelivery/"


def found(admin: Client, **filters: Any) -> list[Any]:
    shown = admin.get(LIST, filters)
    assert shown.status_code == 200
    return [delivery.pk for delivery in shown.context["cl"].result_list]


def test_by_endpoint_also_where_that_is_gone(admin: Client):
    endpoint, other = EndpointFactory(), EndpointFactory()
    wanted, _ = delivery_to(endpoint), delivery_to(other)
    number = endpoint.pk

    assert found(admin, endpoint=number) == [wanted.pk]
    endpoint.delete()
    assert found(admin, endpoint=number) == [wanted.pk]
    assert found(admin, endpoint="\x00") == []


def test_by_status(admin: Client):
    endpoint = EndpointFactory()
    dead, _ = delivery_to(endpoint, dead=True), delivery_to(endpoint)

    assert found(admin, status="dead") == [dead.pk]


def test_by_time(admin: Client):
    endpoint = EndpointFactory()

    def happened(**ago: float) -> uuid.UUID:
        time = timezone.now() - dt.timedelta(**ago)
        first = delivery_filters._first_id(time)
        pk = uuid.UUID(int=first.int | uuid.uuid4().int >> 60)
        return delivery_to(endpoint, id=pk, created_at=time).pk

    minutes, _ = happened(minutes=59), happened(minutes=61)
    hours, _ = happened(hours=23), happened(days=2)

    assert found(admin, since="1h") == [minutes]
    assert found(admin, since="24h")[-1] == hours
    assert len(found(admin, since="24h")) == 3
    assert len(found(admin, since="7d")) == 4
    assert len(found(admin, since="no such time")) == 4


def test_by_topic_among_the_newest_that_the_others_leave(
    admin: Client, monkeypatch: pytest.MonkeyPatch
):
    other_topic = topics.define("test.other", title="Other", description="For tests.")
    endpoint, other = EndpointFactory(), EndpointFactory()
    payload = {"endpoint_id": 0, "topic": other_topic.name, "body": "{}"}
    old = delivery_to(endpoint, payload=payload)
    new = delivery_to(endpoint, payload=payload)
    delivery_to(endpoint)
    for _ in range(3):
        delivery_to(other)
    monkeypatch.setattr(delivery_filters, "LOOKED_AT", 2)

    assert found(admin, topic=TOPIC, endpoint=other.pk) != []
    assert found(admin, topic=other_topic.name) == []
    assert found(admin, topic=other_topic.name, endpoint=endpoint.pk) == [new.pk]
    monkeypatch.setattr(delivery_filters, "LOOKED_AT", 10)
    assert found(admin, topic=other_topic.name) == [new.pk, old.pk]
    assert found(admin, topic="\x00") == []
