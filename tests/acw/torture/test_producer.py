from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from acw.torture import produced
from acw.torture.job_types import KINDS
from acw.torture.scratch import Scratch

ROOT = Path(__file__).resolve().parents[3]
JOBS = 1_500


@pytest.fixture
def noted(scratch: Scratch, connection: psycopg.Connection, tmp_path: Path) -> Path:
    """What it wrote down, brought into the table."""
    notes = tmp_path / "produced"
    subprocess.run(
        [
            *(sys.executable, "-m", "acw.torture.producer"),
            *("3", str(JOBS), "0.5", str(notes)),
        ],
        cwd=ROOT,
        env=scratch.env(),
        check=True,
    )
    produced.load(connection, notes)
    return notes


@pytest.mark.usefixtures("noted")
def test_exactly_what_it_says_is_committed_is_there(connection: psycopg.Connection):
    fates: dict[str, int] = dict(
        connection.execute(
            "SELECT fate, count(*) FROM torture_produced GROUP BY fate"
        ).fetchall()
    )
    # How many keys are taken at the moment of their enqueue is chance.
    assert {"committed", "rolled back"} <= set(fates)
    assert set(fates) <= {"committed", "rolled back", "deduplicated"}
    assert fates["committed"] >= JOBS
    committed = connection.execute(
        "SELECT ref_id FROM torture_produced WHERE fate = 'committed' ORDER BY ref_id"
    ).fetchall()
    there = connection.execute("SELECT ref_id FROM jobs ORDER BY ref_id").fetchall()
    assert there == committed
    types = connection.execute("SELECT DISTINCT type FROM jobs").fetchall()
    assert {name for (name,) in types} <= set(KINDS)


@pytest.mark.usefixtures("noted")
def test_some_transactions_roll_back_a_part_of_themselves(
    connection: psycopg.Connection,
):
    found = connection.execute(
        "SELECT count(*) FROM (SELECT batch FROM torture_produced GROUP BY batch"
        " HAVING array_agg(DISTINCT fate) @> ARRAY['committed', 'rolled back']) AS mixed"
    ).fetchone()
    assert found is not None
    assert found[0] > 0


@pytest.mark.usefixtures("noted")
def test_no_key_is_there_twice(connection: psycopg.Connection):
    keys = connection.execute(
        "SELECT count(unique_key), count(DISTINCT unique_key) FROM jobs"
    ).fetchone()
    assert keys is not None
    assert keys[0] == keys[1] > 0


def test_a_transaction_that_the_server_refuses_is_noted_as_rolled_back(
    scratch: Scratch, connection: psycopg.Connection, tmp_path: Path
):
    """It goes on, and makes up for it later."""
    connection.execute(
        "CREATE FUNCTION torture_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF NEW.ref_id LIKE '1.%' OR NEW.ref_id LIKE '2.%' THEN RAISE EXCEPTION 'refused'; END IF; RETURN NEW; END $$"
    )
    connection.execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION torture_refuse()"
    )
    try:
        notes = tmp_path / "produced"
        subprocess.run(
            [
                *(sys.executable, "-m", "acw.torture.producer"),
                *("3", "50", "0.1", str(notes)),
            ],
            cwd=ROOT,
            env=scratch.env(),
            check=True,
        )
        produced.load(connection, notes)
    finally:
        connection.execute("DROP FUNCTION torture_refuse CASCADE")
    found = connection.execute(
        "SELECT DISTINCT fate FROM torture_produced WHERE batch IN (1, 2)"
    ).fetchall()
    assert found == [("rolled back",)]
    committed = connection.execute(
        "SELECT count(*) FROM torture_produced WHERE fate = 'committed'"
    ).fetchone()
    assert committed is not None
    assert committed[0] >= 50
