"""Real processes, whose standard streams are closed or full."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workspaces.tasks import streams

ROOT = Path(__file__).resolve().parents[3]
BEGINNING = """
import sys
from workspaces.tasks import streams
"""
ANSWER = """
answer = streams.answer(sys.stdout)
try:
    answer.write("done\\n")
    answer.flush()
except streams.Unwritten as error:
    print(error, file=sys.stderr)
    sys.exit(3)
"""
WORDS = """
words = streams.words(sys.stderr)
words.write("wrong\\n")
words.flush()
sys.exit(2)
"""


def python(code: str, streams_: str) -> subprocess.CompletedProcess[str]:
    """What becomes of Python code whose streams the shell has set up so."""
    return subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {streams_}', sys.executable, BEGINNING + code],
        cwd=ROOT,
        # What is not buffered is not tried again at the end.
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("redirection", "said"),
    [(">&-", "it is closed"), (">/dev/full", "[Errno 28] No space left on device")],
)
def test_an_answer_that_does_not_arrive(redirection: str, said: str):
    ended = python(ANSWER, redirection)
    assert (ended.returncode, ended.stderr) == (3, f"{said}\n")


def test_an_answer_that_arrives():
    ended = python(ANSWER, "")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_words_that_do_not_arrive_leave_the_exit_status(redirection: str):
    assert python(WORDS, redirection).returncode == 2


def test_words_that_arrive():
    ended = python(WORDS, "")
    assert (ended.returncode, ended.stderr) == (2, "wrong\n")


def test_what_the_encoding_does_not_have_is_escaped():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="latin-1")
    answer = streams.answer(stream)
    answer.write("é→")
    answer.flush()
    assert raw.getvalue() == b"\xe9\\u2192"
    assert answer.encoding == "latin-1"
