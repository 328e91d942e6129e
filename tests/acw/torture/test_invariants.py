"""Each promise, broken on purpose: the checks must see it, and see nothing where it is kept."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from acw.torture.invariants import INVARIANTS, SHOWN, violations
from acw.torture.job_types import (
    ATOMIC,
    DELETED,
    EXITING,
    FLAKY,
    HOPELESS,
    QUICK,
    SLOW,
    SNOOZING,
)
from tests.acw.torture.history import WORKER, History

EXPIRED = "-1 second"
SLOT = "2026-01-01 00:00:00+00"


@pytest.fixture
def history(connection: psycopg.Connection) -> History:
    return History(connection)


def broken(history: History) -> set[str]:
    return {violation.name for violation in violations(history.connection)}


def test_a_run_in_which_everything_may_happen_that_may_breaks_nothing(history: History):
    history.ran(history.job())
    history.produced("rolled back")
    history.produced("deduplicated")
    for _ in range(2):
        history.ran(history.enqueued(history.produced("unknown", batch=100)))
    history.produced("unknown", batch=101)

    deleted = history.job(kind=DELETED)
    history.claimed(deleted)
    history.executed(deleted)
    history.deleted(deleted)

    suspended = history.job(kind=SLOW)
    history.claimed(suspended, lease=EXPIRED)
    history.executed(suspended)
    history.returned(suspended, error="worker lost: it gave no sign of life")
    history.ran(suspended, pid=2)

    killed = history.job()
    history.claimed(killed, pid=3)
    history.executed(killed, pid=3, ending=None)
    history.process(3, status=-9)
    history.returned(killed, error="worker lost: it ended while this job ran")
    history.claimed(killed, pid=2)
    history.returned(killed, refund=1)
    history.ran(killed, pid=2)

    stopped = history.job(kind=SLOW)
    history.claimed(stopped, pid=4)
    history.executed(stopped, pid=4, ending=None)
    history.process(4, status=3)
    history.returned(stopped, error="interrupted: still running", refund=1)
    history.ran(stopped)

    flaky = history.job(kind=FLAKY)
    history.claimed(flaky)
    history.executed(flaky, ending="failed")
    history.returned(flaky, error="TortureFailure: attempt 1 of 1")
    history.ran(flaky)

    snoozing = history.job(kind=SNOOZING)
    history.claimed(snoozing)
    history.executed(snoozing, ending="snoozed")
    history.returned(snoozing, refund=1)
    history.ran(snoozing)

    for kind, ending in ((HOPELESS, "failed"), (EXITING, None)):
        doomed = history.job(kind=kind)
        history.claimed(doomed)
        history.executed(doomed, ending=ending)
        history.dead(doomed)

    cut_off = history.job(kind=ATOMIC, payload='{"amount": 7}')
    history.claimed(cut_off)
    history.executed(cut_off)
    history.returned(cut_off, error="OperationalError: the connection is lost")
    history.effect(history.ran(cut_off), 7)

    for _ in range(2):
        history.ran(history.enqueued(history.produced(key="key"), key="key"))
    history.tick(SLOT)
    history.tick(SLOT)
    history.tick_ended(SLOT)
    assert violations(history.connection) == []


def lost(history: History) -> None:
    history.deleted(history.ran(history.job()))


def never_committed(history: History) -> None:
    history.produced()


def deleted_without_being_run(history: History) -> None:
    history.deleted(history.job(kind=DELETED))


def rolled_back_and_there(history: History) -> None:
    history.ran(history.enqueued(history.produced("rolled back")))


def rolled_back_and_run(history: History) -> None:
    history.connection.execute(
        "INSERT INTO torture_executions (id, job_id, ref_id, type, lease_seq, attempt, pid)"
        " VALUES (gen_random_uuid(), gen_random_uuid(), %s, 'torture.quick', 1, 1, 1)",
        [history.produced("rolled back")],
    )


def in_spite_of_a_live_key(history: History) -> None:
    history.ran(history.enqueued(history.produced("deduplicated")))


def half_a_transaction(history: History) -> None:
    history.ran(history.enqueued(history.produced("unknown", batch=100)))
    history.produced("unknown", batch=100)


def pending(history: History) -> None:
    history.job()


def running(history: History) -> None:
    history.claimed(history.job())


def completed_twice(history: History) -> None:
    job = history.ran(history.job())
    history.connection.execute(
        "UPDATE jobs SET completed_at = completed_at + interval '1 second' WHERE id = %s",
        [job],
    )


def completed_by_a_stale_worker(history: History) -> None:
    job = history.job()
    history.claimed(job, lease=EXPIRED)
    history.executed(job)
    history.returned(job, error="worker lost: it gave no sign of life")
    history.claimed(job, pid=2)
    history.completed(job)


def one_lease_twice(history: History) -> None:
    job = history.job()
    history.claimed(job)
    history.executed(job)
    history.executed(job)
    history.completed(job)


def by_another_than_its_holder(history: History) -> None:
    job = history.job()
    history.claimed(job, pid=1)
    history.executed(job, pid=2)
    history.completed(job)


def without_a_lease(history: History) -> None:
    job = history.job()
    history.executed(job)
    history.ran(job)


def again_for_no_reason(history: History) -> None:
    job = history.job()
    history.claimed(job)
    history.executed(job)
    history.returned(job)
    history.ran(job)


def taken_from_a_worker_that_lives(history: History) -> None:
    job = history.job()
    history.claimed(job, pid=1)
    history.executed(job, pid=1)
    history.process(1, status=0)
    history.returned(job, error="worker lost: it ended while this job ran")
    history.ran(job)


def two_at_once(history: History) -> None:
    job = history.job(kind=FLAKY)
    history.claimed(job)
    history.executed(job, ending="failed")
    history.returned(job, error="TortureFailure: attempt 1 of 1")
    history.claimed(job)
    history.executed(job)
    history.completed(job)
    history.connection.execute(
        "UPDATE torture_executions SET ended_at = clock_timestamp() WHERE ending = 'failed'"
    )


def refunded_though_begun(history: History) -> None:
    job = history.job(kind=FLAKY)
    history.claimed(job)
    history.executed(job, ending="failed")
    history.returned(job, error="TortureFailure: attempt 1 of 1", refund=1)
    history.ran(job)


def too_many_attempts(history: History) -> None:
    history.ran(history.enqueued(history.produced(), max_attempts=1))
    history.connection.execute(
        "UPDATE torture_transitions SET new_attempts = 2 WHERE new_status = 'running'"
    )


def revived(history: History) -> None:
    job = history.job(kind=HOPELESS)
    history.claimed(job)
    history.executed(job, ending="failed")
    history.dead(job)
    history.connection.execute(
        "UPDATE jobs SET completed_at = completed_at + interval '1 second' WHERE id = %s",
        [job],
    )


def completed_after_its_lease_was_taken_back(history: History) -> None:
    job = history.job()
    history.claimed(job, lease=EXPIRED)
    history.executed(job)
    history.returned(job, error="worker lost: it gave no sign of life")
    history.completed(job)


def dead_that_should_complete(history: History) -> None:
    job = history.job()
    history.claimed(job)
    history.executed(job, ending="failed")
    history.dead(job)


def kept_that_should_be_deleted(history: History) -> None:
    history.ran(history.job(kind=DELETED))


def effect_missing(history: History) -> None:
    history.ran(history.job(kind=ATOMIC, payload='{"amount": 7}'))


def effect_twice(history: History) -> None:
    job = history.ran(history.job(kind=ATOMIC, payload='{"amount": 7}'))
    history.effect(job, 7)
    history.effect(job, 7)


def effect_of_another_amount(history: History) -> None:
    job = history.ran(history.job(kind=ATOMIC, payload='{"amount": 7}'))
    history.effect(job, 8)


def effect_of_nobody(history: History) -> None:
    job = history.job(kind=QUICK)
    history.effect(history.ran(job), 7)


def two_with_one_key(history: History) -> None:
    jobs = [history.job(), history.job()]
    for job in jobs:
        history.ran(job)
    history.connection.execute(
        "UPDATE torture_transitions SET unique_key = 'key' WHERE job_id = ANY(%s)",
        [jobs],
    )


def before_it_is_due(history: History) -> None:
    job = history.job()
    history.connection.execute(
        "UPDATE jobs SET run_at = now() + interval '1 hour' WHERE id = %s", [job]
    )
    history.ran(job)


def a_tick_after_its_end(history: History) -> None:
    history.tick(SLOT)
    history.tick_ended(SLOT)
    history.tick(SLOT)


def a_tick_recorded_twice(history: History) -> None:
    history.tick_ended(SLOT)
    history.tick_ended(SLOT)


def a_worker_that_failed(history: History) -> None:
    history.process(1, status=1, expected=False)


@pytest.mark.parametrize(
    ("tamper", "expected"),
    [
        (lost, {"lost", "after the end"}),
        (never_committed, {"lost"}),
        (deleted_without_being_run, {"lost", "unleased end"}),
        (rolled_back_and_there, {"rolled back"}),
        (rolled_back_and_run, {"rolled back", "no lease"}),
        (in_spite_of_a_live_key, {"rolled back"}),
        (half_a_transaction, {"half a transaction"}),
        (pending, {"unfinished"}),
        (running, {"unfinished"}),
        (completed_twice, {"completed twice", "after the end"}),
        (completed_by_a_stale_worker, {"completed unexecuted"}),
        (one_lease_twice, {"one lease twice"}),
        (by_another_than_its_holder, {"no lease"}),
        (without_a_lease, {"no lease"}),
        (again_for_no_reason, {"unexplained"}),
        (taken_from_a_worker_that_lives, {"unexplained"}),
        (two_at_once, {"overlap"}),
        (refunded_though_begun, {"refund"}),
        (too_many_attempts, {"attempts"}),
        (revived, {"after the end"}),
        (completed_after_its_lease_was_taken_back, {"unleased end"}),
        (dead_that_should_complete, {"wrong end"}),
        (kept_that_should_be_deleted, {"wrong end"}),
        (effect_missing, {"effects"}),
        (effect_twice, {"effects"}),
        (effect_of_another_amount, {"effects"}),
        (effect_of_nobody, {"effects"}),
        (two_with_one_key, {"unique keys"}),
        (before_it_is_due, {"too early"}),
        (a_tick_after_its_end, {"ticks"}),
        (a_tick_recorded_twice, {"ticks"}),
        (a_worker_that_failed, {"processes"}),
    ],
)
def test_what_breaks_a_promise_is_seen(
    history: History, tamper: Callable[[History], None], expected: set[str]
):
    for kind in (QUICK, SLOW):
        history.ran(history.job(kind=kind))
    assert broken(history) == set()
    tamper(history)
    assert broken(history) == expected


def test_each_promise_is_broken_above():
    marks = test_what_breaks_a_promise_is_seen.pytestmark
    seen = set().union(*(expected for _, expected in marks[0].args[1]))
    assert seen == {invariant.name for invariant in INVARIANTS}


def test_rows_are_named_by_column_and_counted_though_not_all_are_shown(
    history: History,
):
    for _ in range(SHOWN + 5):
        history.job()
    (violation,) = violations(history.connection)
    assert violation.count == SHOWN + 5
    assert len(violation.rows) == SHOWN
    assert violation.columns[:3] == ("id", "type", "status")
    assert violation.rows[0][2] == "pending"


def test_the_worker_is_known_by_the_process_id_in_its_name(history: History):
    job = history.job()
    history.claimed(job, pid=4711)
    row = history.connection.execute(
        "SELECT pid, leased_by FROM torture_leases"
    ).fetchone()
    assert row == (4711, WORKER.format(pid=4711))
