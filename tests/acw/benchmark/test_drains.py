from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from acw.benchmark import children, drains
from acw.benchmark.children import Child
from acw.benchmark.drains import BATCH, Drained
from acw.benchmark.errors import CountError
from acw.benchmark.scratch import Scratch
from jobs.claims import LARGEST_BATCH


def test_a_drain_handles_and_records_every_job(
    scratch: Scratch, connection: psycopg.Connection
):
    drained = drains.drain(scratch, jobs=300)
    assert drained.rate > 0
    assert len(drained.peak_rss) == 1
    found = connection.execute(
        "SELECT status, count(*) FROM jobs WHERE type = 'bench.noop' GROUP BY 1"
    )
    assert found.fetchall() == [("completed", 300)]


def test_jobs_that_the_loop_did_not_count_are_refused(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
):
    run = children.run

    def run_and_lose_one(loops: Sequence[Child]) -> list[dict[str, Any]]:
        return [{**result, "jobs": result["jobs"] - 1} for result in run(loops)]

    monkeypatch.setattr(children, "run", run_and_lose_one)
    with pytest.raises(CountError, match="50 jobs were enqueued, 49 handled"):
        drains.plain_loop(scratch, jobs=50, kept=False)


def test_loops_and_drain_take_turns(scratch: Scratch, monkeypatch: pytest.MonkeyPatch):
    taken: list[object] = []

    def loop(scratch: Scratch, *, batch: int = BATCH, **options: object) -> float:
        taken.append(batch)
        return 100.0 if batch == BATCH else 200.0

    def drain(scratch: Scratch, **options: object) -> Drained:
        taken.append("drain")
        return Drained(rate=90.0, peak_rss=[], cpu_seconds=0)

    monkeypatch.setattr(drains, "plain_loop", loop)
    monkeypatch.setattr(drains, "drain", drain)
    figures = drains.measure_kept(scratch, rounds=2, short=True)
    warm_up, *rounds = taken
    assert warm_up == BATCH
    assert rounds == [BATCH, LARGEST_BATCH, "drain"] * 4
    assert [figure.ratio for figure in figures] == [0.9, 0.45] * 2
    assert [figure.goal for figure in figures] == ["≥ 0.85", "", "", ""]
