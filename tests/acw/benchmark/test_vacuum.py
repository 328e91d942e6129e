from __future__ import annotations

import psycopg
import pytest

from acw.benchmark import vacuum
from acw.benchmark.errors import BenchmarkError, CountError
from acw.benchmark.job_types import NOOP
from acw.benchmark.scratch import Scratch
from acw.benchmark.vacuum import Beside, Flow, Times

QUICK = Times(warm_up=0.2, before=0.5, beside=0.5, last=0.4)


def test_the_short_form_has_the_claims_before_and_beside_a_snapshot(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(vacuum, "SHORT", QUICK)
    (figure,) = vacuum.measure(scratch, rounds=1, short=True)
    assert figure.goal == "< 2"
    assert figure.ceiling is not None
    assert figure.ratio == figure.value / figure.ceiling


def test_the_full_form_has_the_flow_by_itself_and_the_doctor_as_well(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
):
    runs: list[dict[str, bool]] = []

    def run(scratch: Scratch, times: Times, **options: bool) -> Beside:
        runs.append(options)
        return Beside(before=2.0, end=3.0, named=options.get("ask_doctor"))

    monkeypatch.setattr(vacuum, "_run", run)
    alone, beside, named = vacuum.measure(scratch, rounds=3, short=False)
    assert runs == [{"held": False}, {"held": True, "ask_doctor": True}]
    assert (alone.goal, beside.goal) == ("", "< 2")
    assert beside.ratio == 1.5
    assert named.value == 1


def test_a_snapshot_is_held_as_long_as_the_block(
    scratch: Scratch, connection: psycopg.Connection
):
    held = "SELECT backend_xmin IS NOT NULL, state FROM pg_stat_activity WHERE pid = %s"
    with vacuum.held_snapshot(scratch) as pid:
        found = connection.execute(held, [pid]).fetchall()
        assert found == [(True, "idle in transaction")]


def test_the_doctor_does_not_name_just_any_process(scratch: Scratch):
    with vacuum.held_snapshot(scratch) as pid:
        assert vacuum.is_named(scratch, pid) is False


def test_no_claim_in_the_time_that_counts_is_no_figure():
    with pytest.raises(BenchmarkError, match="the worker claimed nothing"):
        vacuum.p95([(1.0, 0.1)], since=2.0, until=3.0)


def test_the_claims_of_the_time_that_counts_are_taken():
    claims = [(0.9, 9.0), (1.0, 0.002), (1.5, 0.001), (2.0, 9.0)]
    assert vacuum.p95(claims, since=1.0, until=2.0) == pytest.approx(2.0)


def test_a_job_that_nobody_takes_is_no_figure(
    scratch: Scratch,
    connection: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(vacuum, "_CAUGHT_UP_WITHIN", 0.0)
    connection.execute(
        "INSERT INTO jobs (id, type) VALUES (gen_random_uuid(), %s)", [NOOP]
    )
    with pytest.raises(CountError, match="1 jobs were enqueued, 0 handled"):
        vacuum.check(scratch, 1)


def test_a_flow_that_breaks_off_is_told(scratch: Scratch):
    with Flow(scratch) as flow, scratch.connect() as connection:
        flow.go_on(0.1)
        connection.execute("ALTER TABLE jobs RENAME TO jobs_away")
        try:
            # The second time it has surely ended.
            for _ in range(2):
                with pytest.raises(BenchmarkError, match="the flow of jobs broke off"):
                    flow.go_on(10)
        finally:
            connection.execute("ALTER TABLE jobs_away RENAME TO jobs")
