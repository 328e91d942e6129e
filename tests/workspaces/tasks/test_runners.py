from __future__ import annotations

import datetime as dt
import threading

import pytest

from jobs.models import Job
from jobs.registry import runners
from tests.workspaces.tasks.market import publish, unwatched

pytestmark = pytest.mark.django_db


def test_both_tick_at_their_own_intervals():
    reconcile, report = runners()["task_reconcile"], runners()["task_report"]
    assert (reconcile.enabled, reconcile.interval) == (True, dt.timedelta(minutes=15))
    assert (report.enabled, report.interval) == (True, dt.timedelta(hours=24))


def test_the_reconciliation_mends():
    task = publish()
    Job.objects.all().delete()
    summary = runners()["task_reconcile"].tick(threading.Event())
    assert summary == {"looked_at": 1, "mended": 1, "waiting": 0, "failed": 0}
    assert unwatched(task) == set()


def test_the_report_reports():
    publish()
    summary = runners()["task_report"].tick(threading.Event())
    assert summary == {"reported": 1, "events": 1, "live": 1}
