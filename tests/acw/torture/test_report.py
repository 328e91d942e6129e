from __future__ import annotations

import io

from acw.torture import report
from acw.torture.invariants import INVARIANTS, Violation
from acw.torture.run import Result

FIGURES = {"executions": 12_345, "jobs/s": 1234.56, "pick-up p99": 1.2345}


def printed(*violations: Violation) -> str:
    stdout = io.StringIO()
    report.print_result(stdout, Result(figures=FIGURES, violations=list(violations)))
    return stdout.getvalue()


def test_every_promise_is_named_with_whether_it_was_kept():
    text = printed()
    for invariant in INVARIANTS:
        assert f"kept  {invariant.promise}" in text
    assert "BROKEN" not in text


def test_figures_have_their_units():
    lines = [line.split() for line in printed().splitlines()]
    assert ["executions", "12,345"] in lines
    assert ["jobs/s", "1,234.6"] in lines
    assert ["pick-up", "p99", "1,234.5", "ms"] in lines


def test_of_a_broken_promise_the_rows_are_printed():
    lost = INVARIANTS[0]
    text = printed(
        Violation(
            name=lost.name,
            promise=lost.promise,
            count=21,
            columns=("ref_id", "type"),
            rows=[("7.1", "torture.quick"), ("7.2", None)],
        )
    )
    assert f"BROKEN  {lost.promise}" in text
    assert f"BROKEN: {lost.promise}: 21 rows" in text
    assert "7.1     torture.quick" in text
    assert "7.2     None" in text
