from __future__ import annotations

import psycopg

from acw.torture import figures
from acw.torture.job_types import DELETED, HOPELESS, SNOOZING
from tests.acw.torture.history import History


def test_what_was_noted_is_counted(connection: psycopg.Connection):
    history = History(connection)
    for fate in ("rolled back", "unknown", "deduplicated"):
        history.produced(fate)
    history.ran(history.job())
    deleted = history.job(kind=DELETED)
    history.claimed(deleted)
    history.executed(deleted)
    history.deleted(deleted)
    lost = history.job(kind=SNOOZING)
    history.claimed(lost, lease="-1 second")
    history.executed(lost)
    history.returned(lost, error="worker lost: it gave no sign of life")
    history.claimed(lost)
    history.returned(lost, error="worker lost: it ended while this job ran")
    history.claimed(lost)
    history.returned(lost, refund=1)
    history.ran(lost)
    dead = history.job(kind=HOPELESS)
    history.claimed(dead)
    history.executed(dead, ending="failed")
    history.dead(dead)
    history.process(1, status=0)
    history.tick("2026-01-01 00:00:00+00")
    connection.execute("INSERT INTO torture_faults VALUES (1, now(), 'kill -9', '1')")
    found = figures.read(connection)
    assert {name: value for name, value in found.items() if value == int(value)} == {
        "jobs committed": 4,
        "jobs rolled back": 1,
        "jobs of unknown fate": 1,
        "jobs whose key was live": 1,
        "executions": 5,
        "leases expired": 1,
        "leases taken back from dead workers": 1,
        "leases given back unbegun": 1,
        "worker processes": 1,
        "ticks": 1,
        "jobs completed": 2,
        "jobs dead": 1,
        "jobs completed and deleted": 1,
        "jobs executed more than once": 1,
        "most executions of a job": 2,
        "fault: kill -9": 1,
    }
    for name in ("pick-up p50", "pick-up p99", "duration p50", "jobs/s"):
        assert found[name] > 0


def test_the_wait_counts_from_when_a_job_was_due(connection: psycopg.Connection):
    history = History(connection)
    job = history.job()
    connection.execute(
        "UPDATE torture_transitions SET at = at - interval '1 hour' WHERE job_id = %s",
        [job],
    )
    connection.execute("UPDATE jobs SET run_at = now() - interval '1 minute'")
    history.ran(job)
    assert 60 <= figures.read(connection)["pick-up p50"] < 120


def test_of_an_empty_run_there_is_little_to_say(connection: psycopg.Connection):
    found = figures.read(connection)
    assert found["executions"] == found["jobs/s"] == found["pick-up p99"] == 0
