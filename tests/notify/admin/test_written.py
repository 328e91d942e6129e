from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.asserts import assertContains, assertNotContains

from tests.notify.factories import (
    TOPIC,
    NotificationFactory,
)

pytestmark = pytest.mark.django_db


def page(model: str, *args: object, verb: str = "changelist") -> str:
    return reverse(f"admin:notify_{model}_{verb}", args=args)


def test_notifications_are_found_by_topic(admin: Client):
    NotificationFactory(title="Wanted")
    NotificationFactory(title="Unwanted", topic="test.other")

    shown = admin.get(page("notification"), {"topic": TOPIC})

    assertContains(shown, "Wanted")
    assertNotContains(shown, "Unwanted")
