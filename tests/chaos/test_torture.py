"""The torture on servers of its own: they are restarted, fast and at once, and a standby takes over from a primary that dies.

The short form belongs to ``make test``; ``make chaos`` runs the long one. A run that breaks a promise keeps its evidence: the
tables as CSV, and the logs of all processes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from acw.embedded.cluster import Cluster
from acw.torture import report
from acw.torture.faults import FAULTS, Fault, Field
from acw.torture.run import Plan, Result, run
from acw.torture.scratch import Scratch, scratch_schema
from tests.chaos.pair import SETTINGS, Pair

SESSIONS = {"max_connections": "200"}
_EVIDENCE = """
SELECT relname FROM pg_class
WHERE relnamespace = current_schema::regnamespace AND relkind IN ('r', 'v') AND relname ~ '^(torture|job)'
"""


class Screen:
    """Prints, also past a test that passes where it is asked to (``-s``)."""

    def write(self, text: str) -> None:
        print(text, end="" if text.endswith("\n") else "\n")  # noqa: T201


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """What was committed outlives an immediate stop: commits wait for the system, which needs no disk for that."""
    cluster = Cluster(
        tmp_path / "postgres", database="acw", settings={**SETTINGS, **SESSIONS}
    )
    cluster.ensure_running()
    yield cluster
    cluster.stop()


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair(settings=SESSIONS)
    try:
        pair.start()
        yield pair
    finally:
        pair.close()


@pytest.fixture
def torture(tmp_path: Path) -> Callable[..., Result]:
    """Runs it, prints what came of it, and fails with the evidence kept where a promise was broken."""

    def torture(server: dict[str, str], plan: Plan, *faults: Fault) -> Result:
        evidence = tmp_path / "evidence"
        with scratch_schema(server) as scratch:
            try:
                result = run(scratch, plan, say=Screen().write, faults=faults)
            except BaseException:
                keep(scratch, evidence)
                raise
            report.print_result(Screen(), result)
            if result.violations:
                keep(scratch, evidence)
        assert result.violations == [], f"seed {plan.seed}, evidence in {evidence}"
        return result

    return torture


def keep(scratch: Scratch, evidence: Path) -> None:
    shutil.copytree(scratch.directory, evidence)
    with scratch.connect() as connection:
        for (name,) in connection.execute(_EVIDENCE).fetchall():
            write(connection, name, evidence / f"{name}.csv")


def write(connection: psycopg.Connection, table: str, file: Path) -> None:
    statement = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT (FORMAT csv, HEADER)")
    with (
        file.open("wb") as output,
        connection.cursor() as cursor,
        cursor.copy(statement.format(sql.Identifier(table))) as copy,
    ):
        for block in copy:
            output.write(block)


def restart(cluster: Cluster, mode: str) -> Fault:
    def inject(field: Field) -> str:
        cluster.restart(mode)
        return "the server"

    return Fault(name=f"{mode} restart", inject=inject)


def happened(result: Result, *faults: Fault) -> bool:
    return all(result.figures.get(f"fault: {fault.name}", 0) > 0 for fault in faults)


def test_every_promise_is_kept_while_workers_and_server_go_down_and_come_back(
    cluster: Cluster, torture: Callable[..., Result], seed: int, full: bool
) -> None:
    faults = (*FAULTS, restart(cluster, "fast"), restart(cluster, "immediate"))
    if full:
        plan = Plan(seed=seed, seconds=300)
    else:
        plan = Plan(seed=seed, jobs=1_500, seconds=9, lease=2, fault_every=1)
    server = {**cluster.connection_parameters(), "dbname": "acw"}
    result = torture(server, plan, *faults)
    assert result.figures["jobs committed"] >= plan.jobs
    assert happened(result, *faults)


def test_every_promise_is_kept_while_the_primary_dies_and_the_standby_takes_over(
    pair: Pair, torture: Callable[..., Result], seed: int, full: bool
) -> None:
    def fail_over(field: Field) -> str:
        pair.kill_primary()
        pair.promote()
        return "the primary is dead, the standby promoted"

    failover = Fault(name="failover", inject=fail_over, once=True)
    if full:
        plan = Plan(seed=seed, seconds=120)
    else:
        plan = Plan(seed=seed, jobs=600, seconds=5, lease=2, fault_every=1)
    result = torture(conninfo_to_dict(pair.url()), plan, *FAULTS, failover)
    assert result.figures["jobs committed"] >= plan.jobs - 100
    assert result.figures["fault: failover"] == 1
