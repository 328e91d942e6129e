"""The handlers, the runner and the ledger, in a process of their own: their types are in no registry but the torture's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg

from acw.torture.job_types import (
    ATOMIC,
    DELETED,
    EXIT_STATUS,
    EXITING,
    FLAKY,
    HOPELESS,
    KINDS,
    MANY,
    QUICK,
    SLOW,
    SNOOZING,
)
from acw.torture.scratch import Scratch

ROOT = Path(__file__).resolve().parents[3]
RUN = """
import sys
import django
django.setup()
from jobs.enqueue import enqueue
from jobs.testing import run_due_jobs
{enqueues}
for _ in range(4):
    run_due_jobs()
    from jobs.models import Job
    from django.utils import timezone
    Job.objects.filter(status="pending").update(run_at=timezone.now())
"""


def run(scratch: Scratch, *enqueues: str, status: int = 0) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(enqueues="\n".join(enqueues))],
        cwd=ROOT,
        env=scratch.env(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr


def endings(
    connection: psycopg.Connection, type_name: str
) -> list[tuple[int, int, str | None]]:
    """Of each execution: its lease, its attempt, how it ended."""
    return connection.execute(
        "SELECT lease_seq, attempt, ending FROM torture_executions WHERE type = %s ORDER BY lease_seq",
        [type_name],
    ).fetchall()


def test_each_kind_ends_as_it_is_to_end_and_notes_how_it_got_there(
    scratch: Scratch, connection: psycopg.Connection
):
    run(
        scratch,
        "enqueue('torture.quick', {})",
        "enqueue('torture.deleted', {})",
        "enqueue('torture.slow', {'seconds': 0.01})",
        "enqueue('torture.flaky', {'times': 2})",
        "enqueue('torture.hopeless', {})",
        "enqueue('torture.snoozing', {'times': 2})",
        "enqueue('torture.atomic', {'amount': 7})",
    )
    ends: dict[str, str] = dict(
        connection.execute("SELECT type, status FROM jobs").fetchall()
    )
    done = {name for name in KINDS if name != EXITING}
    assert {name: ends.get(name) for name in done} == {
        name: KINDS[name].ends for name in done
    }
    once = [(1, 1, "completed")]
    for name in (QUICK, DELETED, SLOW, ATOMIC):
        assert endings(connection, name) == once
    failures = [(1, 1, "failed"), (2, 2, "failed")]
    assert endings(connection, HOPELESS) == failures
    assert endings(connection, FLAKY) == [*failures, (3, 3, "completed")]
    assert endings(connection, SNOOZING) == [
        (1, 1, "snoozed"),
        (2, 1, "snoozed"),
        (3, 1, "completed"),
    ]
    effects = connection.execute("SELECT amount FROM torture_effects").fetchall()
    assert effects == [(7,)]


def test_one_kind_ends_its_process_in_the_middle(
    scratch: Scratch, connection: psycopg.Connection
):
    run(scratch, "enqueue('torture.exiting', {})", status=EXIT_STATUS)
    assert endings(connection, EXITING) == [(1, 1, None)]


def test_every_kind_is_registered_with_attempts_that_fit_its_end(scratch: Scratch):
    run(
        scratch,
        "from jobs import registry",
        f"ends = { ({name: kind.ends for name, kind in KINDS.items()})!r}",
        "ours = {n: t for n, t in registry.job_types().items() if n.startswith('torture.')}",
        "assert set(ours) == set(ends), sorted(ours)",
        f"assert all((t.max_attempts == {MANY}) == (ends[n] != 'dead') for n, t in ours.items())",
        "assert [n for n, t in ours.items() if not t.keep_completed] == [n for n in ends if ends[n] is None]",
        "assert [n for n, t in ours.items() if t.atomic] == ['torture.atomic']",
    )


def test_what_is_noted_survives_the_end_of_its_session(
    scratch: Scratch, connection: psycopg.Connection
):
    run(
        scratch,
        "from acw.torture import ledger",
        "from jobs.connection import QueueConnection",
        "enqueue('torture.quick', {})",
        "ledger._mine.connection = QueueConnection()",
        "pid = ledger._mine.connection.execute('SELECT pg_backend_pid()', [])[0][0]",
        "QueueConnection().execute('SELECT pg_terminate_backend(%s)', [pid])",
    )
    assert endings(connection, QUICK) == [(1, 1, "completed")]


def test_a_tick_is_noted_with_its_place_in_the_schedule(
    scratch: Scratch, connection: psycopg.Connection
):
    """Without one where the schedule is another worker's by the time it begins."""
    run(
        scratch,
        "import os, threading",
        "from django.db import connection",
        "from jobs import registry, ticks",
        "from jobs.connection import QueueConnection",
        "tick = registry.runners()['torture_tick'].tick",
        "ticks.register(QueueConnection())",
        "for pid in (os.getpid(), 1):",
        "    with connection.cursor() as cursor:",
        "        cursor.execute('UPDATE job_runners SET last_worker = %s', [f'torture:{pid}:0123abcd'])",
        "    assert tick(threading.Event()) == {}",
    )
    found = connection.execute(
        "SELECT slot = next_run_at, torture_ticks.ended_at IS NOT NULL FROM torture_ticks"
        " CROSS JOIN job_runners WHERE name = 'torture_tick' ORDER BY torture_ticks.begun_at"
    ).fetchall()
    assert found == [(True, True), (None, True)]
