from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from jobs.command_line import subcommands

ROOT = Path(__file__).resolve().parents[2]
LOADED = """
import sys
import django
django.setup()
print(sorted(name for name in sys.modules if name.startswith("acw.torture")))
"""


def test_torture_is_a_verb_of_jobs():
    assert "torture" in subcommands()


def test_a_process_that_does_not_torture_does_not_load_how_that_is_done():
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
