from __future__ import annotations

from notify.models import AuditEntry


def test_an_entry_reads_as_who_did_what():
    entry = AuditEntry(actor="alice", action="job.retry", target="job:1")
    assert str(entry) == "alice: job.retry job:1"
