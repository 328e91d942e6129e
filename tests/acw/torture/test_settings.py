from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from acw.torture.scratch import Scratch

ROOT = Path(__file__).resolve().parents[3]
OPERATORS = ("ACW_DATA_DIR", "DATABASE_URL")


def load(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from acw.torture import settings"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def test_they_load_in_the_tortures_own_processes(scratch: Scratch):
    assert load(scratch.env()).returncode == 0


@pytest.mark.parametrize("name", OPERATORS)
def test_with_anything_of_an_operators_they_refuse_to_load(scratch: Scratch, name: str):
    done = load(scratch.env(**{name: os.environ[name]}))
    assert done.returncode != 0
    assert "for the processes that `manage.py jobs torture` starts" in done.stderr
