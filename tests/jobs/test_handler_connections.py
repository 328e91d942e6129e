from __future__ import annotations

import pytest
from django.db import connection, connections, transaction

from jobs.handler_connections import HandlerConnections


@pytest.mark.django_db
def test_a_transaction_of_the_callers_is_left_alone() -> None:
    handlers = HandlerConnections()
    handlers.tidy()
    assert connection.in_atomic_block
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_a_handler_left_open_is_gone_and_the_connection_works() -> (
    None
):
    handlers = HandlerConnections()
    for _ in range(2):
        transaction.atomic().__enter__()
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE left_open ()")
        handlers.tidy()
        assert not connection.in_atomic_block
        with connection.cursor() as cursor:
            cursor.execute("SELECT to_regclass('left_open')")
            assert cursor.fetchone() == (None,)


@pytest.mark.django_db(transaction=True)
def test_a_sound_connection_is_kept_from_one_job_to_the_next() -> None:
    handlers = HandlerConnections()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        before = cursor.fetchone()
    handlers.tidy()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        assert cursor.fetchone() == before


@pytest.mark.django_db(transaction=True)
def test_none_is_opened_that_no_handler_asked_for() -> None:
    connection.close()
    HandlerConnections().tidy()
    assert connections["default"].connection is None


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_a_handler_began_by_hand_is_rolled_back() -> None:
    handlers = HandlerConnections()
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("CREATE TABLE left_open ()")
    handlers.tidy()
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE kept ()")
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('left_open'), to_regclass('kept')::text")
        assert cursor.fetchone() == (None, "kept")
        cursor.execute("DROP TABLE kept")
