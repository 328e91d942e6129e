from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import threading
from acw.scratch import tether
tether.end_with_stdin()
print("tied", flush=True)
threading.Event().wait()
"""


def test_a_process_ends_with_whoever_holds_its_standard_input():
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "tied\n"
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(30) == 1
