"""A run with real workers, in which two jobs are meddled with behind the queue's back: all else must be well."""

from __future__ import annotations

import pytest

from acw.torture import run as run_module
from acw.torture.errors import TortureError
from acw.torture.faults import Fault, Field
from acw.torture.run import Plan, run
from acw.torture.scratch import Scratch

pytestmark = pytest.mark.long

PLAN = Plan(seed=5, jobs=80, seconds=1, workers=1, fault_every=0.2)


def steal(field: Field) -> str | None:
    """One that is done, or is to be done, vanishes."""
    with field.scratch.connect() as connection:
        stolen = connection.execute(
            "DELETE FROM jobs WHERE id = (SELECT id FROM jobs WHERE ref_id IS NOT NULL AND status IN ('pending', 'completed')"
            " LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"
        ).fetchone()
    return str(stolen[0]) if stolen else None


def strand(field: Field) -> str:
    """One is there that is never due."""
    with field.scratch.connect() as connection:
        connection.execute(
            "INSERT INTO jobs (id, type, run_at) VALUES (gen_random_uuid(), 'torture.quick', now() + interval '1 day')"
        )
    return "one job"


def test_it_ends_though_a_job_does_not_and_tells_what_is_broken_and_nothing_else(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(run_module, "NO_PROGRESS", 10.0)
    said: list[str] = []
    result = run(
        scratch,
        PLAN,
        say=said.append,
        faults=[
            Fault(name="theft", inject=steal, once=True),
            Fault(name="stranding", inject=strand, once=True),
        ],
    )
    broken = {violation.name for violation in result.violations}
    assert broken - {"after the end", "unleased end"} == {"lost", "unfinished"}
    assert result.figures["fault: theft"] == result.figures["fault: stranding"] == 1
    committed = result.figures["jobs committed"]
    assert committed >= PLAN.jobs
    assert result.figures["executions"] >= committed - 1
    assert 0 < result.figures["pick-up p50"] <= result.figures["pick-up p99"]
    assert "seed 5" in said[0]
    assert any(line.startswith("theft: ") for line in said)


def test_it_cannot_come_to_a_result_where_no_jobs_come_in(scratch: Scratch):
    # Where it would write what it does.
    (scratch.directory / "produced").mkdir()
    with pytest.raises(TortureError, match=r"(?s)producer.*IsADirectoryError"):
        run(scratch, PLAN, say=lambda text: None, faults=[])
