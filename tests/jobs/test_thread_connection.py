from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from jobs import thread_connection
from jobs.connection import QueueConnection
from jobs.riding import Write

pytestmark = pytest.mark.django_db(transaction=True)

PID = "SELECT pg_backend_pid()"


def in_a_worker_thread(act: Callable[[QueueConnection], Any]) -> Any:
    """What comes of it in a thread that has lent its connection, as a worker's does."""
    found: list[Any] = []

    def run() -> None:
        with QueueConnection() as own:
            thread_connection.lend(own)
            found.append(act(own))
        connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def pid_of(own: QueueConnection) -> int:
    return own.raw().info.backend_pid


def test_in_a_workers_thread_it_is_that_threads_own_and_djangos_is_not_opened():
    def act(own: QueueConnection) -> bool:
        ((pid,),) = thread_connection.execute(PID, {})
        return bool(pid == pid_of(own)) and connection.connection is None

    assert in_a_worker_thread(act)


def test_in_a_transaction_it_takes_part_in_that():
    def act(own: QueueConnection) -> bool:
        with transaction.atomic():
            ((pid,),) = thread_connection.execute(PID, {})
            assert connection.connection is not None
            return bool(pid == connection.connection.info.backend_pid)

    assert in_a_worker_thread(act)


def test_elsewhere_it_is_djangos():
    ((pid,),) = thread_connection.execute(PID, {})

    assert connection.connection is not None
    assert pid == connection.connection.info.backend_pid


def test_a_statement_without_rows_gives_none():
    assert (
        thread_connection.execute("SELECT set_config('a.b', 'c', true) LIMIT 0", {})
        == []
    )
    assert thread_connection.execute("RESET ROLE", {}) == []


def end_from_outside(pid: int) -> None:
    """End a session as a server that restarts does, and return when it has been told."""
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])


def test_a_connection_that_the_server_has_ended_is_replaced_before_it_is_used():
    def act(own: QueueConnection) -> bool:
        before = pid_of(own)
        end_from_outside(before)
        ((pid,),) = thread_connection.execute(PID, {})
        return bool(pid != before)

    assert in_a_worker_thread(act)
    ((before,),) = thread_connection.execute(PID, {})
    end_from_outside(before)
    assert thread_connection.execute(PID, {}) != [(before,)]


def test_what_rides_along_is_written_with_the_threads_next_statement():
    write = Write(sql="SELECT set_config('riding.seen', %(riding)s, false)")

    def act(own: QueueConnection) -> bool:
        thread_connection.ride_along(write, {"id": 1})
        waits = bool(own._riding)
        thread_connection.execute(PID, {})
        ((seen,),) = thread_connection.execute(
            "SELECT current_setting('riding.seen', true)", {}
        )
        return waits and seen == '[{"id": 1}]'

    assert in_a_worker_thread(act)


def test_it_can_be_written_at_once():
    write = Write(sql="SELECT %(riding)s::json")

    def act(own: QueueConnection) -> bool:
        thread_connection.ride_along(write, {"id": 1})
        thread_connection.write_waiting()
        return not own._riding

    assert in_a_worker_thread(act)


def test_elsewhere_it_is_written_at_once():
    thread_connection.write_waiting()
    thread_connection.ride_along(
        Write(sql="SELECT set_config('riding.seen', %(riding)s, false)"), {"id": 2}
    )

    ((seen,),) = thread_connection.execute("SELECT current_setting('riding.seen')", {})
    assert seen == '[{"id": 2}]'
