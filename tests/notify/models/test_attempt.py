from __future__ import annotations

import pytest

from notify.models import WebhookAttempt
from tests.notify.factories import AttemptFactory

pytestmark = pytest.mark.django_db


def test_an_attempts_outcome_is_unknown_until_it_is_written():
    attempt = AttemptFactory()

    assert attempt.verdict == WebhookAttempt.Verdict.UNKNOWN
    assert attempt.finished_at is None
    assert str(attempt) == f"attempt 1 of {attempt.job_id}"
    assert str(AttemptFactory(job_id=None)) == "attempt 1 of a test event"


def test_attempts_outlive_their_endpoint():
    attempt = AttemptFactory()
    attempt.endpoint.delete()
    attempt.refresh_from_db()

    assert attempt.endpoint is None
