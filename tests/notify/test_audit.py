from __future__ import annotations

import pytest

from notify import audit
from notify.models import AuditEntry

pytestmark = pytest.mark.django_db


def test_what_was_done_is_recorded():
    audit.record("alice", "job.retry", target="job:1", data={"status": "dead"})

    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.target) == ("alice", "job.retry", "job:1")
    assert entry.data == {"status": "dead"}
    assert entry.created_at is not None
    assert str(entry) == "alice: job.retry job:1"


def test_what_is_too_long_for_its_column_is_cut_and_recorded():
    audit.record("a" * 999, "b" * 999, target="c" * 999)

    entry = AuditEntry.objects.get()
    assert (len(entry.actor), len(entry.action), len(entry.target)) == (200, 100, 300)
    assert entry.data == {}
