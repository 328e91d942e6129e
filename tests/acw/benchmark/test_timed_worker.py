from __future__ import annotations

import psycopg
import pytest

from acw.benchmark import meter, rows
from acw.benchmark.children import Child
from acw.benchmark.scratch import Scratch
from acw.benchmark.timed_worker import CLAIMS, timed
from jobs import claims
from jobs.testing import wait_until
from jobs.wakeup import CHANNEL


def test_a_call_is_passed_on_and_noted():
    noted: list[tuple[float, float]] = []
    assert timed(divmod, noted)(7, 2) == (3, 1)
    ((began, took),) = noted
    assert began > 0
    assert took >= 0


def test_a_call_that_fails_is_no_time():
    noted: list[tuple[float, float]] = []
    with pytest.raises(ZeroDivisionError):
        timed(divmod, noted)(7, 0)
    assert noted == []


@pytest.mark.parametrize("name", CLAIMS)
def test_these_are_the_queues_own(name: str):
    assert callable(getattr(claims, name))


def test_it_works_between_two_words_and_tells_what_its_claims_took(
    scratch: Scratch, connection: psycopg.Connection
):
    rows.fill(connection, 7)
    with Child("acw.benchmark.timed_worker", [2], scratch.env()) as worker:
        worker.go()
        connection.execute("SELECT pg_notify(%s, '')", [CHANNEL])
        wait_until(lambda: meter.counted(scratch.meters) == 7)
        worker.go()
        noted = worker.result()["claims"]
    assert noted
    assert all(took > 0 for _, took in noted)
