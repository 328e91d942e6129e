from __future__ import annotations

import os
from pathlib import Path

import pytest

from acw.benchmark import children
from acw.benchmark.children import Child
from acw.benchmark.errors import BenchmarkError

PROGRAM = """
import sys
from acw.benchmark import gate
moment = gate.wait()
if len(sys.argv) > 1:
    sys.exit("it went wrong")
gate.report({"moment": moment})
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "sample_program.py").write_text(PROGRAM)
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def test_they_go_only_when_all_are_ready(env: dict[str, str]):
    programs = [Child("sample_program", [], env) for _ in range(2)]
    with children.together(programs):
        first, second = children.run(programs)
    assert first["moment"] > 0
    assert second["moment"] > 0


def test_one_that_fails_says_why(env: dict[str, str]):
    program = Child("sample_program", ["fail"], env)
    with program, pytest.raises(BenchmarkError, match="status 1: it went wrong"):
        children.run([program])


def test_one_that_never_gets_ready_says_why(env: dict[str, str]):
    with (
        pytest.raises(BenchmarkError, match="No module named missing_program"),
        Child("missing_program", [], env),
    ):
        pass


def test_one_that_was_not_let_go_ends_with_the_block(env: dict[str, str]):
    with Child("sample_program", [], env) as program:
        pass
    assert program.status is not None
