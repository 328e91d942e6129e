from __future__ import annotations

import pytest

from acw.benchmark import growth
from acw.benchmark.drains import Drained
from acw.benchmark.scratch import Scratch


def test_each_state_is_drained_beside_its_own_rows_and_no_others(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
):
    lying: list[list[tuple[str, int]]] = []

    def drain(scratch: Scratch, *, jobs: int) -> Drained:
        with scratch.connect() as connection:
            lying.append(
                connection.execute(
                    "SELECT status, count(*) FROM jobs GROUP BY 1"
                ).fetchall()
            )
        return Drained(rate=90.0 if lying[-1] else 100.0, peak_rss=[], cpu_seconds=0)

    monkeypatch.setattr(growth, "drain", drain)
    monkeypatch.setattr(growth, "warm_up", lambda scratch, jobs: None)
    figures = growth.measure(scratch, rounds=2, short=True, rows=7)
    assert lying == [[], [("completed", 7)], [("dead", 7)], [("pending", 7)]] * 2
    assert [figure.ratio for figure in figures] == [0.9] * 3
    with scratch.connect() as connection:
        assert connection.execute("SELECT count(*) FROM jobs").fetchone() == (0,)
