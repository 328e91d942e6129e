from __future__ import annotations

import contextlib
import datetime as dt
import os
import struct
import uuid
from collections.abc import Callable, Iterable, Iterator

import psycopg
import pytest
from django.db import connection
from psycopg import pq

from jobs.connection import QueueConnection
from jobs.doctor import Finding, Level
from jobs.probes import vacuum
from jobs.testing import wait_until

NO_TIME = dt.timedelta(0)


def only(findings: Iterable[Finding]) -> Finding:
    (finding,) = findings
    return finding


def about(text: str) -> list[Finding]:
    """What the probe says of whatever has this text in its name."""
    return [found for found in vacuum.vacuum() if text in found.message]


@pytest.fixture
def everything_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """However short it is held, and with however few dead rows."""
    monkeypatch.setattr(vacuum, "LONGEST_TRANSACTION", NO_TIME)
    monkeypatch.setattr(vacuum, "MOST_TRANSACTIONS", 0)


@pytest.fixture
def dead_rows(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], None]]:
    """Makes real dead rows, which are many from here on."""

    def make() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO jobs (id, type) SELECT gen_random_uuid(), 'test.noop' FROM generate_series(1, 50)"
            )
            cursor.execute("ALTER TABLE jobs SET (autovacuum_enabled = false)")
            cursor.execute("UPDATE jobs SET ref_id = 'changed'")
            cursor.execute("SELECT pg_stat_force_next_flush()")
        wait_until(
            lambda: vacuum._table().dead >= 50, "the dead rows in the statistics"
        )
        monkeypatch.setattr(vacuum, "DEAD_ROWS", 50)

    # The table's own threshold is 500, and fifty rows are quicker.
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobs SET (autovacuum_vacuum_threshold = 1)")
    yield make
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobs RESET (autovacuum_enabled)")
        cursor.execute("ALTER TABLE jobs SET (autovacuum_vacuum_threshold = 500)")


@contextlib.contextmanager
def held(
    queue_connection: QueueConnection, statement: str, *, isolation: str = ""
) -> Iterator[int]:
    """The process of a transaction that is open, with this as its last statement."""
    raw = queue_connection.raw()
    raw.execute(f"BEGIN {isolation}".encode())
    raw.execute(statement.encode())
    yield raw.info.backend_pid
    raw.execute("ROLLBACK")


def snapshot(
    queue_connection: QueueConnection, statement: str = "SELECT FROM jobs"
) -> contextlib.AbstractContextManager[int]:
    return held(
        queue_connection, statement, isolation="ISOLATION LEVEL REPEATABLE READ"
    )


@pytest.mark.django_db
def test_nothing_holds_it_back():
    finding = only(vacuum.vacuum())
    assert finding.level is Level.OK
    assert "dead rows beside" in finding.message


@pytest.mark.usefixtures("everything_counts")
def test_a_snapshot_is_named_with_its_process(queue_connection: QueueConnection):
    with snapshot(queue_connection) as pid:
        finding = only(about(f"process {pid}, user "))
    assert finding.level is Level.WARNING
    assert "idle in transaction" in finding.message
    assert "'SELECT FROM jobs'" in finding.message
    assert "vacuum keeps every row that died since" in finding.message
    assert f"SELECT pg_terminate_backend({pid})" in finding.advice


@pytest.mark.usefixtures("everything_counts")
def test_what_has_written_is_named_without_a_snapshot(
    queue_connection: QueueConnection,
):
    with held(queue_connection, "SELECT pg_current_xact_id()") as pid:
        assert "vacuum keeps every row" in only(about(f"process {pid},")).message


@pytest.mark.usefixtures("everything_counts")
def test_an_open_transaction_that_holds_nothing_back_is_told_apart(
    queue_connection: QueueConnection,
):
    with held(queue_connection, "SELECT 1") as pid:
        message = only(about(f"process {pid},")).message
    assert "it holds back no vacuum now, but its locks" in message


def test_one_that_is_young_is_not_named(queue_connection: QueueConnection):
    with snapshot(queue_connection) as pid:
        assert about(f"process {pid},") == []


def test_a_minute_is_enough_where_dead_rows_pile_up(
    queue_connection: QueueConnection,
    dead_rows: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(vacuum, "HELD_FOR", NO_TIME)
    with snapshot(queue_connection) as pid:
        assert about(f"process {pid},") == []
        dead_rows()
        message = only(about(f"process {pid},")).message
    assert "dead rows beside" in message


@pytest.mark.usefixtures("everything_counts")
def test_no_value_of_a_statement_is_shown(queue_connection: QueueConnection):
    statement = "SELECT FROM jobs WHERE type = 'a-secret'"
    with snapshot(queue_connection, statement) as pid:
        message = only(about(f"process {pid},")).message
    assert "SELECT FROM jobs WHERE type =" in message
    assert "a-secret" not in message


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("SELECT 1", "SELECT 1"),
        ("  SELECT\n\t1 ", "SELECT 1"),
        ("ALTER ROLE acw PASSWORD 'secret'", "ALTER ROLE acw PASSWORD"),
        ("DO $$ secret $$", "DO"),
        (
            "COPY t FROM https://me:secret@example.org",
            "COPY t FROM https://me:***@example.org",
        ),
        ("x" * 100, "x" * 60),
    ],
)
def test_the_first_words_of_a_statement(statement: str, shown: str):
    assert vacuum._shown(statement) == shown


@pytest.mark.usefixtures("everything_counts", "transactional_db")
def test_of_another_database_only_what_has_written_is_named():
    with psycopg.connect(
        os.environ["DATABASE_URL"], dbname="postgres", autocommit=True
    ) as elsewhere:
        pid = elsewhere.info.backend_pid
        elsewhere.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        elsewhere.execute("SELECT FROM pg_class")
        assert about(f"process {pid},") == []
        elsewhere.execute("SELECT pg_current_xact_id()")
        assert "database postgres" in only(about(f"process {pid},")).message


@pytest.mark.usefixtures("everything_counts", "transactional_db")
def test_a_prepared_transaction_is_named():
    with connection.cursor() as cursor:
        cursor.execute("SHOW max_prepared_transactions")
        if cursor.fetchone() == ("0",):
            pytest.skip(
                "the server takes no prepared transactions: max_prepared_transactions is 0"
            )
        cursor.execute(
            "BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'it''s'"
        )
        try:
            finding = only(about("prepared transaction 'it''s'"))
        finally:
            cursor.execute("ROLLBACK PREPARED 'it''s'")
    assert finding.level is Level.WARNING
    assert "ROLLBACK PREPARED 'it''s'" in finding.advice


class Standby:
    """A standby that says that it still needs every row: the part of it that the server sees."""

    def __init__(self, slot: str | None) -> None:
        self._connection = pq.PGconn.connect(
            psycopg.conninfo.make_conninfo(
                os.environ["DATABASE_URL"], replication="true"
            ).encode()
        )
        command = f"START_REPLICATION {f'SLOT {slot}' if slot else ''} PHYSICAL {wal_position()}"
        result = self._connection.exec_(command.encode())
        assert result.status == pq.ExecStatus.COPY_BOTH, result.error_message
        self.pid = self._connection.backend_pid

    def feed_back(self, xmin: int) -> None:
        """Tell what it needs, as the stream's protocol has it: the time, then xmin and catalog_xmin with epochs."""
        self._connection.put_copy_data(struct.pack("!cqIIII", b"h", 0, xmin, 0, 0, 0))
        self._connection.flush()

    def close(self) -> None:
        self._connection.finish()


def wal_position() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_wal_lsn()")
        return str(cursor.fetchone()[0])


def next_transaction() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()::xid::text::bigint")
        return int(cursor.fetchone()[0])


@pytest.mark.usefixtures("everything_counts", "transactional_db")
def test_a_standby_that_feeds_back_is_named():
    standby = Standby(slot=None)
    try:
        standby.feed_back(next_transaction())
        finding = wait_until(
            lambda: next(iter(about(f"(process {standby.pid})")), None), "the feedback"
        )
    finally:
        standby.close()
    assert finding is not None
    assert finding.message.startswith("standby ")
    assert "hot_standby_feedback" in finding.advice


@pytest.mark.usefixtures("everything_counts", "transactional_db")
def test_a_replication_slot_is_named_in_use_and_out_of_use():
    slot = f"doctor_{uuid.uuid4().hex[:8]}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_create_physical_replication_slot(%s)", [slot])
        try:
            standby = Standby(slot)
            try:
                standby.feed_back(next_transaction())
                used = wait_until(lambda: about(f"replication slot {slot} (in use)"))
            finally:
                standby.close()
            unused = wait_until(lambda: about(f"replication slot {slot} (not in use)"))
        finally:
            wait_until(lambda: dropped(slot), "the slot to be let go")
    assert "keeps the rows of" in only(used).message
    assert f"pg_drop_replication_slot('{slot}')" not in only(used).advice
    assert f"pg_drop_replication_slot('{slot}')" in only(unused).advice


def dropped(slot: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            " WHERE slot_name = %s AND NOT active",
            [slot],
        )
        return bool(cursor.fetchall())


@pytest.mark.django_db
def test_autovacuum_that_is_off_for_the_table_is_a_warning():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobs SET (autovacuum_enabled = off)")
    finding = only(vacuum.vacuum())
    assert finding.level is Level.WARNING
    assert "switched off for the table jobs" in finding.message
    assert "ALTER TABLE jobs RESET (autovacuum_enabled)" in finding.advice


@pytest.mark.django_db
def test_autovacuum_that_is_off_on_the_server_is_a_warning():
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL track_counts = off")
    finding = only(vacuum.vacuum())
    assert finding.level is Level.WARNING
    assert "switched off on this server" in finding.message


def test_dead_rows_that_nothing_holds_are_autovacuums_fault(
    dead_rows: Callable[[], None], monkeypatch: pytest.MonkeyPatch
):
    dead_rows()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobs RESET (autovacuum_enabled)")
    monkeypatch.setattr(vacuum, "DEAD_ROWS", 10)
    monkeypatch.setattr(vacuum, "LONGEST_TRANSACTION", dt.timedelta(days=1_000))
    assert only(vacuum.vacuum()).level is Level.OK  # it has had no time yet
    monkeypatch.setattr(vacuum, "LONGEST_TRANSACTION", NO_TIME)
    finding = next(f for f in vacuum.vacuum() if "nothing was found" in f.message)
    assert finding.level is Level.WARNING
    assert "VACUUM (ANALYZE) jobs" in finding.advice


@pytest.mark.django_db
def test_the_trigger_is_the_tables_own():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobs SET (autovacuum_vacuum_threshold = 4711)")
        cursor.execute("ANALYZE jobs")
    assert vacuum._table().trigger == 4711


@pytest.mark.usefixtures("everything_counts")
def test_a_role_that_may_not_see_the_others_is_told_so(
    queue_connection: QueueConnection,
):
    role = f"doctor_{uuid.uuid4().hex[:8]}"
    with snapshot(queue_connection) as pid, connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {role}")
        cursor.execute(f"SET ROLE {role}")
        try:
            finding = only(about(f"process {pid},"))
        finally:
            cursor.execute("RESET ROLE")
            cursor.execute(f"DROP ROLE {role}")
    assert "state hidden" in finding.message
    assert f'GRANT pg_read_all_stats TO "{role}"' in finding.advice
