from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs import pagination
from jobs.models import Job
from jobs.pagination import CappedPaginator
from tests.jobs.factories import JobFactory

pytestmark = pytest.mark.django_db


def test_few_rows_are_counted():
    JobFactory.create_batch(3)
    assert CappedPaginator(Job.objects.order_by("-pk"), 2).num_pages == 2


def test_counting_ends_at_the_cap(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pagination, "COUNTED", 2)
    JobFactory.create_batch(5)
    with CaptureQueriesContext(connection) as queries:
        assert CappedPaginator(Job.objects.order_by("-pk"), 2).count == 2
    assert "LIMIT 2" in queries[0]["sql"]
    assert "ORDER BY" not in queries[0]["sql"]
