from __future__ import annotations

import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from acw.torture.faults import FAULTS, Deck, Fault, Field
from acw.torture.fleet import Fleet
from acw.torture.scratch import Scratch
from jobs.testing import wait_until

BY_NAME = {fault.name: fault for fault in FAULTS}
LEASE = 2.0
STANDS_STILL = """
import threading
print("jobs.module.started", flush=True)
threading.Event().wait()
"""


def seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - chooses, and guards nothing


@pytest.fixture
def field(scratch: Scratch) -> Iterator[Field]:
    """Two processes that do nothing, in the place of workers."""
    with Fleet(scratch, workers=2, threads=1, settings={}) as fleet:
        fleet._command = [sys.executable, "-c", STANDS_STILL]
        fleet.await_up()
        yield Field(scratch=scratch, fleet=fleet, random=seeded(1), lease=LEASE)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def statuses(field: Field) -> list[tuple[int, bool]]:
    """Of those that have ended: exit status, and whether that was expected."""
    field.fleet.stop_all()
    with field.scratch.connect() as connection:
        field.fleet.note(connection)
        return connection.execute(
            "SELECT status, expected FROM torture_processes ORDER BY status"
        ).fetchall()


@pytest.mark.parametrize(
    ("name", "number"), [("kill -9", signal.SIGKILL), ("SIGTERM", signal.SIGTERM)]
)
def test_a_worker_ends_and_another_takes_its_place(
    field: Field, name: str, number: int
):
    before = {worker.process.pid for worker in field.fleet.at_work()}
    what = BY_NAME[name].inject(field)
    assert what is not None
    assert int(what) in before
    field.fleet.await_up()
    pids = {worker.process.pid for worker in field.fleet.at_work()}
    assert len(pids) == 2
    assert int(what) not in pids
    assert (-number, True) in statuses(field)


def test_a_worker_is_suspended_for_longer_than_its_lease_and_goes_on(field: Field):
    what = BY_NAME["SIGSTOP, SIGCONT"].inject(field)
    assert what is not None
    pid, _, seconds, _ = what.split()
    assert LEASE < float(seconds) <= 2 * LEASE
    wait_until(lambda: state(int(pid)) == "T", "suspended")

    def goes_on() -> bool:
        field.fleet.tend()
        return state(int(pid)) != "T"

    wait_until(goes_on, "resumed")
    assert int(pid) in {worker.process.pid for worker in field.fleet.at_work()}


def test_what_is_suspended_already_is_not_suspended_again(field: Field):
    suspend = BY_NAME["SIGSTOP, SIGCONT"].inject
    suspended = [suspend(field) for _ in range(2)]
    assert None not in suspended
    assert suspend(field) is None
    field.fleet.resume_all()
    assert suspend(field) is not None


def test_only_the_runs_own_sessions_are_terminated(
    field: Field, connection: psycopg.Connection
):
    cut = BY_NAME["sessions terminated"].inject
    assert cut(field) is None
    url = field.scratch.env(application_name=field.scratch.worker_sessions)
    with psycopg.connect(url["DATABASE_URL"], autocommit=True) as workers:
        assert cut(field) == "1 sessions"
        with pytest.raises(psycopg.OperationalError):
            workers.execute("SELECT 1")
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_where_nobody_is_at_work_nothing_is_done(field: Field):
    field.fleet.stop_all()
    for fault in FAULTS:
        assert fault.inject(field) is None, fault.name


def deck(*made: Fault) -> Deck:
    return Deck(made, seeded(1))


def nothing(field: Field) -> None:
    """Never called."""


def names(cards: Deck, count: int) -> list[str]:
    dealt = [cards.deal() for _ in range(count)]
    return [fault.name for fault in dealt if fault is not None]


def test_each_comes_as_often_as_it_should_in_each_round():
    cards = deck(*FAULTS)
    size = sum(fault.often for fault in FAULTS)
    for _ in range(3):
        assert Counter(names(cards, size)) == {
            fault.name: fault.often for fault in FAULTS
        }


def test_it_is_complete_when_each_has_happened():
    cards = deck(*FAULTS)
    for _ in range(3 * sum(fault.often for fault in FAULTS)):
        fault = cards.deal()
        assert fault is not None
        cards.put_back(fault)
        assert not cards.complete
    while not cards.complete:
        assert cards.deal() is not None


def test_the_order_is_that_of_the_seed():
    first, second, other = (names(Deck(FAULTS, seeded(seed)), 30) for seed in (1, 1, 2))
    assert first == second
    assert first != other


def test_what_comes_once_comes_again_only_where_it_did_not_happen():
    once = Fault(name="once", inject=nothing, once=True)
    often = Fault(name="often", inject=nothing)
    cards = deck(once, often)
    assert sorted(names(cards, 2)) == ["often", "once"]
    cards.put_back(once)
    assert sorted(names(cards, 2)) == ["often", "once"]
    assert names(cards, 3) == ["often"] * 3


def test_where_all_came_once_there_is_no_more():
    cards = deck(Fault(name="once", inject=nothing, once=True))
    assert names(cards, 3) == ["once"]
    assert cards.complete
