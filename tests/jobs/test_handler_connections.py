from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from psycopg.rows import dict_row

from jobs import handler_connections
from jobs.connection import QueueConnection
from jobs.handler_connections import HandlerConnections, watch

Use = Callable[[str], None]

KEPT = ExitStack()
"""What a handler keeps open."""

SESSION = """
SELECT current_user, session_user,
    (SELECT array_agg(name || '=' || setting ORDER BY name) FROM pg_settings WHERE source IN ('session', 'client')),
    (SELECT count(*) FROM pg_cursors WHERE is_holdable),
    (SELECT count(*) FROM pg_prepared_statements),
    (SELECT count(*) FROM pg_listening_channels()),
    (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'),
    (SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r')
"""
LEFT_BEHIND = [
    "SET statement_timeout = 54321",
    "SELECT set_config('search_path', 'pg_catalog', false)",
    "SET ROLE pg_monitor",
    "SET SESSION AUTHORIZATION pg_monitor",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "SET TIME ZONE 'Asia/Tokyo'",
    "SET DateStyle = 'SQL, DMY'",
    "DECLARE held CURSOR WITH HOLD FOR SELECT 1",
    "CREATE TEMP TABLE left_behind (x int)",
    "LISTEN left_behind",
    "SELECT pg_advisory_lock(4711)",
    "PREPARE left_behind AS SELECT 1",
]


def row(query: str) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        found: tuple[Any, ...] = cursor.fetchone()
        return found


def backend() -> int:
    pid: int = row("SELECT pg_backend_pid()")[0]
    return pid


def by_django(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def by_the_driver(statement: str) -> None:
    connection.connection.execute(statement)


def by_a_cursor_of_the_drivers_own(statement: str) -> None:
    psycopg.RawCursor(connection.connection).execute(statement)


@pytest.fixture
def handlers(transactional_db: None) -> Iterator[HandlerConnections]:
    """The connections as a handler finds them, with a session that another one has used before."""
    handlers = HandlerConnections()
    backend()
    handlers.tidy()
    yield handlers
    connection.close()


@pytest.mark.django_db
def test_a_transaction_of_the_callers_is_left_alone() -> None:
    handlers = HandlerConnections()
    by_django("SET LOCAL statement_timeout = 54321")
    assert handlers.tidy() is None
    assert connection.in_atomic_block
    assert row("SHOW statement_timeout") == ("54321ms",)


@pytest.mark.django_db
def test_what_is_left_open_in_a_transaction_of_the_callers_is_rolled_back() -> None:
    handlers = HandlerConnections()
    by_django("CREATE TABLE the_callers ()")
    for _ in range(2):
        transaction.atomic().__enter__()
    by_django("CREATE TABLE left_open ()")
    assert "connection 'default'" in str(handlers.tidy())
    assert row("SELECT to_regclass('left_open'), to_regclass('the_callers')::text") == (
        None,
        "the_callers",
    )
    assert handlers.tidy() is None


@pytest.mark.parametrize("statement", LEFT_BEHIND)
@pytest.mark.parametrize(
    "use", [by_django, by_the_driver, by_a_cursor_of_the_drivers_own]
)
def test_a_session_is_as_new_whatever_was_left_in_it(
    handlers: HandlerConnections, use: Use, statement: str
) -> None:
    session, before = backend(), row(SESSION)
    use(statement)
    assert row(SESSION) != before
    handlers.tidy()
    use(statement)
    assert handlers.tidy() is None
    assert row(SESSION) == before
    assert backend() == session


def test_a_session_that_was_opened_by_the_handler_is_as_new(
    handlers: HandlerConnections,
) -> None:
    before = row(SESSION)
    connection.close()
    by_django("SET statement_timeout = 54321")
    handlers.tidy()
    assert row(SESSION) == before


def test_a_cursor_that_was_kept_reaches_nobody_unseen(
    handlers: HandlerConnections,
) -> None:
    before = row(SESSION)
    kept = connection.cursor()
    handlers.tidy()
    kept.execute("SET statement_timeout = 54321")
    handlers.tidy()
    assert row(SESSION) == before


def test_what_a_copy_leaves_behind_is_gone(handlers: HandlerConnections) -> None:
    with connection.cursor() as cursor:
        text = "COPY (SELECT set_config('statement_timeout', '54321', false)) TO STDOUT"
        with cursor.copy(text) as copy:
            assert list(copy)
    handlers.tidy()
    assert row("SHOW statement_timeout") == ("0",)


@pytest.mark.parametrize(
    "alter",
    [
        lambda raw: setattr(raw, "read_only", True),
        lambda raw: setattr(raw, "isolation_level", 4),
        lambda raw: setattr(raw, "deferrable", True),
        lambda raw: setattr(raw, "row_factory", dict_row),
        lambda raw: raw.set_autocommit(False),
        lambda raw: KEPT.enter_context(raw.pipeline()),
        lambda raw: raw.close(),
    ],
    ids=[
        "read_only",
        "isolation_level",
        "deferrable",
        "row_factory",
        "autocommit",
        "pipeline",
        "closed",
    ],
)
def test_a_driver_that_was_altered_is_replaced(
    handlers: HandlerConnections, alter: Callable[[Any], None]
) -> None:
    altered = connection.connection
    backend()
    alter(altered)
    handlers.tidy()
    with suppress(psycopg.Error):
        KEPT.close()
    assert connection.connection is not altered
    assert row("SELECT 1") == (1,)
    assert transaction.get_autocommit()


def test_prepared_statements_of_the_drivers_own_go_on_working(
    handlers: HandlerConnections,
) -> None:
    for _ in range(3):
        connection.connection.prepare_threshold = 0
        connection.connection.execute("SELECT 1", prepare=True)
        handlers.tidy()
    assert row("SELECT 1") == (1,)


def test_what_the_connection_is_configured_with_stays(
    handlers: HandlerConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    def configure(connection: BaseDatabaseWrapper, **kwargs: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = 7000")

    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "assume_role", "postgres")
    monkeypatch.setitem(vars(connections["default"]), "timezone_name", "Asia/Tokyo")
    connection_created.connect(configure)
    try:
        connection.close()
        for _ in range(2):
            session = backend()
            assert row("SHOW lock_timeout") == ("7s",)
            assert row("SHOW role") == ("postgres",)
            assert row("SHOW timezone") == ("Asia/Tokyo",)
            by_django("SET ROLE pg_monitor; SET TIME ZONE 'UTC'; SET lock_timeout = 0")
            handlers.tidy()
        assert backend() == session
    finally:
        connection_created.disconnect(configure)
        connection.close()


def test_wrappers_around_statements_do_not_stay(handlers: HandlerConnections) -> None:
    seen: list[str] = []

    def wrapper(execute: Any, sql: str, *arguments: Any) -> Any:
        seen.append(sql)
        return execute(sql, *arguments)

    connection.execute_wrappers.append(wrapper)
    by_django("SELECT 1")
    handlers.tidy()
    by_django("SELECT 2")
    assert seen == ["SELECT 1"]


def test_behind_a_pooler_the_connection_is_closed(
    handlers: HandlerConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose session a statement would reset there nobody knows."""
    connection.close()
    monkeypatch.setattr(handler_connections, "is_direct", lambda raw: False)
    backend()
    handlers.tidy()
    assert connection.connection is None


def test_a_connection_that_was_not_used_is_left_alone(
    handlers: HandlerConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        handler_connections, "_try_as_new", lambda wrapper: pytest.fail("was touched")
    )
    for _ in range(2):
        handlers.tidy()
    assert connection.connection is not None
    assert not watch(connection.connection).used


def test_none_is_opened_that_no_handler_asked_for(handlers: HandlerConnections) -> None:
    connection.close()
    HandlerConnections().tidy()
    assert connections["default"].connection is None


def test_a_connection_that_is_too_old_is_closed_where_a_batch_begins(
    handlers: HandlerConnections,
) -> None:
    connection.close_at = time.monotonic()
    HandlerConnections()
    assert connection.connection is None


def test_a_session_that_has_failed_is_not_kept(handlers: HandlerConnections) -> None:
    """The server may be primary no longer, though the handler made do without it."""
    by_django("SET default_transaction_read_only = on")
    session = backend()
    with pytest.raises(DatabaseError, match="read-only"):
        by_django("CREATE TABLE refused ()")
    handlers.tidy()
    assert backend() != session


def test_all_are_closed_when_the_database_was_away(
    handlers: HandlerConnections,
) -> None:
    session = backend()
    handlers.tidy()
    handlers.tidy(away=True)
    assert backend() != session


def test_a_session_that_was_cut_is_replaced(
    handlers: HandlerConnections, queue_connection: QueueConnection
) -> None:
    session = backend()
    queue_connection.execute("SELECT pg_terminate_backend(%s, 10000)", [session])
    assert handlers.tidy() is None
    assert backend() != session


def leave_atomic() -> None:
    transaction.atomic().__enter__()
    by_django("CREATE TABLE left_open ()")


def leave_autocommit_off() -> None:
    transaction.set_autocommit(False)
    by_django("CREATE TABLE left_open ()")


def leave_a_begin() -> None:
    by_django("BEGIN; CREATE TABLE left_open ()")


def leave_an_aborted_transaction() -> None:
    by_django("BEGIN; CREATE TABLE left_open ()")
    with pytest.raises(psycopg.Error):
        by_the_driver("SELECT 1 / 0")


def leave_a_closed_atomic() -> None:
    leave_atomic()
    connection.close()


def delete_the_connection() -> None:
    leave_atomic()
    del connections["default"]
    backend()


def replace_the_connection() -> None:
    leave_atomic()
    connections["default"] = connections.create_connection("default")
    backend()


def leave_a_replacement_open() -> None:
    connections["default"] = connections.create_connection("default")
    leave_atomic()


@pytest.mark.parametrize(
    "leave",
    [
        leave_atomic,
        leave_autocommit_off,
        leave_a_begin,
        leave_an_aborted_transaction,
        leave_a_closed_atomic,
        delete_the_connection,
        replace_the_connection,
    ],
)
def test_a_transaction_that_was_left_open_is_rolled_back_and_told(
    handlers: HandlerConnections, leave: Callable[[], None]
) -> None:
    for _ in range(2):
        leave()
        misused = handlers.tidy()
        assert "left open on the connection 'default'" in str(misused)
        assert not connection.in_atomic_block
        assert transaction.get_autocommit()
        assert row("SELECT to_regclass('left_open')") == (None,)
        assert handlers.tidy() is None


def test_one_that_was_left_open_on_a_connection_that_took_anothers_place_is_too(
    handlers: HandlerConnections,
) -> None:
    leave_a_replacement_open()
    assert handlers.tidy() is not None
    assert not connection.in_atomic_block
    assert row("SELECT to_regclass('left_open')") == (None,)


def test_what_was_committed_by_hand_is_no_transaction_left_open(
    handlers: HandlerConnections,
) -> None:
    transaction.set_autocommit(False)
    by_django("CREATE TABLE kept ()")
    transaction.commit()
    assert handlers.tidy() is None
    assert transaction.get_autocommit()
    assert row("SELECT to_regclass('kept')::text") == ("kept",)
    by_django("DROP TABLE kept")


def test_no_session_stays_open_that_nobody_can_reach(
    handlers: HandlerConnections, queue_connection: QueueConnection
) -> None:
    replaced = backend()
    delete_the_connection()
    handlers.tidy()
    assert (
        queue_connection.execute(
            "SELECT FROM pg_stat_activity WHERE pid = %s AND state <> 'idle'",
            [replaced],
        )
        == []
    )
