"""What keeps vacuum from removing dead rows, by the name under which it can be ended.

Each execution of a job leaves dead versions of its row. While anything on the server may still have to see them, they
stay, and the queue walks past more and more of them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection

from jobs.display import duration
from jobs.doctor import Finding, ok, probe, warning
from jobs.redaction import redact

HELD_FOR = dt.timedelta(minutes=1)
"""A transaction that is open for longer is named where dead rows pile up, ..."""

LONGEST_TRANSACTION = dt.timedelta(minutes=10)
"""... and one that is open for longer than this in any case."""

HELD_TRANSACTIONS, MOST_TRANSACTIONS = 20_000, 1_000_000
"""The same limits, as transactions that began since, where it is not known since when it holds."""

DEAD_ROWS = 20_000
"""From here on they pile up, unless autovacuum would not have begun yet."""

NEGLECTED_TIMES = 5
"""As many times more dead rows than autovacuum waits for: it does not keep up."""

_SHOWN = 5
_QUERY_SHOWN = 60

# Where a table's own setting, the server's and, from PostgreSQL 18 on, a maximum meet.
_TABLE = """
WITH table_ AS (
    SELECT oid, greatest(reltuples, 0) AS rows,
        (SELECT jsonb_object_agg(option_name, option_value) FROM pg_options_to_table(reloptions)) AS options
    FROM pg_class WHERE oid = 'jobs'::regclass
)
SELECT coalesce(n_live_tup, 0), coalesce(n_dead_tup, 0),
    least(
        coalesce(options ->> 'autovacuum_vacuum_threshold', current_setting('autovacuum_vacuum_threshold'))::float8
        + rows * coalesce(
            options ->> 'autovacuum_vacuum_scale_factor', current_setting('autovacuum_vacuum_scale_factor')
        )::float8,
        nullif(current_setting('autovacuum_vacuum_max_threshold', true)::float8, -1)
    ),
    statement_timestamp() - greatest(last_vacuum, last_autovacuum),
    statement_timestamp() - greatest(last_vacuum, last_autovacuum, pg_postmaster_start_time()),
    current_setting('autovacuum')::bool AND current_setting('track_counts')::bool,
    coalesce((options ->> 'autovacuum_enabled')::bool, true)
FROM table_ LEFT JOIN pg_stat_all_tables ON relid = table_.oid
"""

# An xid that is open in another database holds back this one too, through the snapshots that are taken here meanwhile
# (seen on PostgreSQL 18); a snapshot of another database does not. What vacuum itself keeps open, it does not wait for.
_SESSIONS = """
SELECT * FROM (
    SELECT pid, coalesce(usename, ''), coalesce(nullif(application_name, ''), 'unnamed'),
        coalesce(datname, ''), datname IS DISTINCT FROM current_database(), coalesce(state, ''),
        statement_timestamp() - xact_start AS open_for,
        greatest(
            age(backend_xid), CASE WHEN datname = current_database() THEN age(backend_xmin) END
        ) AS transactions,
        coalesce(query, '')
    FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND leader_pid IS NULL
        AND coalesce(backend_type, '') NOT IN ('autovacuum worker', 'walsender')
        AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum AS running WHERE running.pid = pg_stat_activity.pid)
        AND (datname = current_database() OR backend_xid IS NOT NULL)
) AS session
WHERE open_for >= %(longest)s
    OR (transactions IS NOT NULL AND open_for >= %(held)s)
    OR (open_for IS NULL AND transactions >= %(transactions)s)
ORDER BY transactions DESC NULLS LAST, open_for DESC
LIMIT %(shown)s
"""

_PREPARED = """
SELECT gid, owner, database, statement_timestamp() - prepared FROM pg_prepared_xacts
WHERE prepared < statement_timestamp() - %(held)s
ORDER BY prepared
LIMIT %(shown)s
"""

# Which rows of ``jobs`` may go is decided by xmin; catalog_xmin holds back the system's own tables.
_SLOTS = """
SELECT slot_name, active, age(xmin), age(catalog_xmin) FROM pg_replication_slots
WHERE age(xmin) >= %(transactions)s OR age(catalog_xmin) >= %(most)s
ORDER BY greatest(age(xmin), age(catalog_xmin)) DESC
LIMIT %(shown)s
"""

_STANDBYS = """
SELECT pid, coalesce(nullif(application_name, ''), 'unnamed'), age(backend_xmin) FROM pg_stat_replication
WHERE age(backend_xmin) >= %(transactions)s
ORDER BY age(backend_xmin) DESC
LIMIT %(shown)s
"""

_SEES_ALL = (
    "SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'), current_user"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Table:
    """The dead rows of ``jobs``, and what autovacuum does about them."""

    live: int
    dead: int
    trigger: float
    vacuumed: dt.timedelta | None
    unattended: dt.timedelta
    server_on: bool
    table_on: bool

    @property
    def piles_up(self) -> bool:
        return self.dead >= max(DEAD_ROWS, self.trigger)

    @property
    def neglected(self) -> bool:
        return (
            self.dead >= NEGLECTED_TIMES * max(DEAD_ROWS, self.trigger)
            and self.unattended >= LONGEST_TRANSACTION
        )

    def __str__(self) -> str:
        vacuumed = (
            "never vacuumed"
            if self.vacuumed is None
            else f"vacuumed {duration(self.vacuumed)} ago"
        )
        return f"jobs has {self.dead:,} dead rows beside {self.live:,} live ones, {vacuumed}"


@probe("vacuum")
def vacuum() -> Iterator[Finding]:
    """Nothing on the server keeps dead rows, and autovacuum removes them."""
    table = _table()
    limits = {
        "held": HELD_FOR if table.piles_up else LONGEST_TRANSACTION,
        "longest": LONGEST_TRANSACTION,
        "transactions": HELD_TRANSACTIONS if table.piles_up else MOST_TRANSACTIONS,
        "most": MOST_TRANSACTIONS,
        "shown": _SHOWN,
    }
    holders = [
        *_sessions(limits, table),
        *_prepared(limits, table),
        *_slots(limits, table),
        *_standbys(limits, table),
    ]
    findings = [*holders, *_autovacuum(table)]
    if table.neglected and not findings:
        findings.append(
            warning(
                f"{table}, and nothing was found that holds vacuum back",
                advice="Autovacuum does not keep up: VACUUM (ANALYZE) jobs, and look at autovacuum_max_workers and "
                f"autovacuum_naptime.{_blindness()}",
            )
        )
    yield from findings or [ok(f"nothing holds it back; {table}.{_blindness()}")]


def _sessions(limits: dict[str, Any], table: _Table) -> Iterator[Finding]:
    for row in _rows(_SESSIONS, limits):
        pid, user, name, database, elsewhere, state, open_for, transactions, query = row
        who = f"a transaction of {name} (process {pid}, user {user}, {state or 'state hidden'}"
        if elsewhere:
            who += f", database {database}"
        # Of others, a role without the right to see them learns neither the time nor the statement.
        since = (
            f"{transactions:,} transactions" if open_for is None else duration(open_for)
        )
        said = f", last statement {shown!r}" if (shown := _shown(query)) else ""
        harm = (
            "it holds back no vacuum now, but its locks can stop a migration"
            if transactions is None
            else f"vacuum keeps every row that died since; {table}"
        )
        yield warning(
            f"{who}) has been open for {since}{said}: {harm}",
            advice=f"End it: SELECT pg_terminate_backend({pid})"
            + (_blindness() if open_for is None else ""),
        )


def _prepared(limits: dict[str, Any], table: _Table) -> Iterator[Finding]:
    for gid, owner, database, age in _rows(_PREPARED, limits):
        quoted = "'" + gid.replace("'", "''") + "'"
        yield warning(
            f"the prepared transaction {quoted} of {owner} waits for its end for {duration(age)}: vacuum keeps every "
            f"row that died since; {table}",
            advice=f"End it, in database {database}: ROLLBACK PREPARED {quoted}, or COMMIT PREPARED; no process does.",
        )


def _slots(limits: dict[str, Any], table: _Table) -> Iterator[Finding]:
    for name, active, rows_age, catalog_age in _rows(_SLOTS, limits):
        used = "in use" if active else "not in use"
        where = f"replication slot {name} ({used})"
        if rows_age is not None:
            message = f"{where} keeps the rows of {rows_age:,} transactions from vacuum; {table}"
        else:
            message = f"{where} keeps the system catalogs of {catalog_age:,} transactions from vacuum"
        yield warning(
            message,
            advice="Its consumer lags, or a query on the standby is long: end that"
            if active
            else "Have its consumer connect again, or, where there is none any more: "
            f"SELECT pg_drop_replication_slot('{name}')",
        )


def _standbys(limits: dict[str, Any], table: _Table) -> Iterator[Finding]:
    for pid, name, age in _rows(_STANDBYS, limits):
        yield warning(
            f"standby {name} (process {pid}) keeps the rows of {age:,} transactions from vacuum, for its queries; {table}",
            advice="End the long query on the standby, or set hot_standby_feedback = off there.",
        )


def _autovacuum(table: _Table) -> Iterator[Finding]:
    if not table.server_on:
        yield warning(
            f"autovacuum is switched off on this server (autovacuum or track_counts); {table}",
            advice="ALTER SYSTEM SET autovacuum = on, likewise track_counts; then SELECT pg_reload_conf()",
        )
    if not table.table_on:
        yield warning(
            f"autovacuum is switched off for the table jobs; {table}",
            advice="ALTER TABLE jobs RESET (autovacuum_enabled)",
        )


def _table() -> _Table:
    ((live, dead, trigger, vacuumed, unattended, server_on, table_on),) = _rows(
        _TABLE, {}
    )
    return _Table(
        live=live,
        dead=dead,
        trigger=trigger,
        vacuumed=vacuumed,
        unattended=unattended,
        server_on=server_on,
        table_on=table_on,
    )


def _blindness() -> str:
    """What a role that may not see the others' sessions does not know, and how it would."""
    ((sees_all, user),) = _rows(_SEES_ALL, {})
    if sees_all:
        return ""
    return (
        " The role sees neither times nor statements of other users' sessions: "
        f"GRANT pg_read_all_stats TO {connection.ops.quote_name(user)}"
    )


def _shown(query: str) -> str:
    """The statement's first words; nothing of its values, which may be secrets."""
    words = " ".join(query.partition("'")[0].partition("$")[0].split())
    return redact(words)[:_QUERY_SHOWN].strip()


def _rows(query: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
