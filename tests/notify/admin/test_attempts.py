from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.asserts import assertContains

from tests.notify.factories import (
    AttemptFactory,
)

pytestmark = pytest.mark.django_db


def page(model: str, *args: object, verb: str = "changelist") -> str:
    return reverse(f"admin:notify_{model}_{verb}", args=args)


def test_an_attempt_shows_what_it_was_and_took(admin: Client):
    AttemptFactory(job_id=None, duration=dt.timedelta(milliseconds=12.4))

    shown = admin.get(page("webhookattempt"))

    assertContains(shown, "test event")
    assertContains(shown, ">12<")


def test_a_job_is_named_by_the_end_of_its_id(admin: Client):
    attempt = AttemptFactory()

    shown = admin.get(page("webhookattempt"))

    assertContains(shown, f"…{str(attempt.job_id)[-12:]}</a>")
    assertContains(shown, f"/admin/jobs/job/{attempt.job_id}/change/")
