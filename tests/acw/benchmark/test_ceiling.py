from __future__ import annotations

import psycopg
import pytest

from acw.benchmark import children, rows
from acw.benchmark.children import Child
from acw.benchmark.scratch import Scratch


@pytest.mark.parametrize(("finished", "kept"), [("keep", 250), ("delete", 0)])
def test_the_loop_does_all_that_is_due_and_nothing_else(
    scratch: Scratch, connection: psycopg.Connection, finished: str, kept: int
):
    rows.seed(connection, "future", 3)
    rows.fill(connection, 250)
    loop = Child("acw.benchmark.ceiling", [2, 100, finished], scratch.env())
    with loop:
        (result,) = children.run([loop])
    assert result["jobs"] == 250
    assert result["ended"] > result["began"]
    counts = connection.execute(
        "SELECT count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'pending') FROM jobs"
    )
    assert counts.fetchone() == (kept, 3)
