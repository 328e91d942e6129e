from __future__ import annotations

import json
from pathlib import Path

import psycopg

from acw.torture import produced


def line(batch: int, fate: str, *refs: str, **more: object) -> str:
    jobs = [[ref, "torture.quick", None] for ref in refs]
    return json.dumps({"batch": batch, "fate": fate, "jobs": jobs, **more}) + "\n"


def fates(
    connection: psycopg.Connection, tmp_path: Path, *lines: str
) -> dict[str, str]:
    notes = tmp_path / "produced"
    notes.write_text("".join(lines))
    produced.load(connection, notes)
    return dict(
        connection.execute("SELECT ref_id, fate FROM torture_produced").fetchall()
    )


def test_what_was_noted_behind_a_transaction_is_its_fate(
    connection: psycopg.Connection, tmp_path: Path
):
    assert fates(
        connection,
        tmp_path,
        line(1, "begun", "1.0", "1.1", "1.2"),
        line(1, "committed", undone=["1.1"], deduplicated=["1.2"]),
        line(2, "begun", "2.0"),
        line(2, "rolled back"),
        line(3, "begun", "3.0", "3.1"),
        line(3, "unknown", undone=["3.1"]),
    ) == {
        "1.0": "committed",
        "1.1": "rolled back",
        "1.2": "deduplicated",
        "2.0": "rolled back",
        "3.0": "unknown",
        "3.1": "rolled back",
    }


def test_nothing_is_known_of_a_transaction_whose_end_is_not_noted(
    connection: psycopg.Connection, tmp_path: Path
):
    cut_off = line(1, "committed")[:-5]
    assert fates(connection, tmp_path, line(1, "begun", "1.0"), cut_off) == {
        "1.0": "unknown"
    }
