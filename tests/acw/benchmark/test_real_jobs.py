from __future__ import annotations

import psycopg
import pytest

from acw.benchmark import real_jobs, rows
from acw.benchmark.errors import CountError
from acw.benchmark.job_types import LATENCY, NOOP
from acw.benchmark.scratch import Scratch
from acw.benchmark.workers import Workers


def test_it_takes_as_long_as_all_of_them_take(scratch: Scratch):
    def lay_out(connection: psycopg.Connection) -> None:
        rows.fill(connection, 5)

    with Workers(scratch) as workers:
        seconds = real_jobs.drain(scratch, workers, lay_out, type_name=NOOP, count=5)
    assert seconds > 0


def test_a_job_that_dies_is_no_figure(scratch: Scratch):
    def lay_out(connection: psycopg.Connection) -> None:
        # Its payload lacks what the handler wants.
        rows.fill(connection, 1, type_name=LATENCY)
        connection.execute("UPDATE jobs SET max_attempts = 1")

    with (
        Workers(scratch) as workers,
        pytest.raises(CountError, match=r"0 are completed and 0 are left.*KeyError"),
    ):
        real_jobs.drain(scratch, workers, lay_out, type_name=LATENCY, count=1)
