"""Hands a peer's script over to the interpreter that has its packages; the harness starts each with its own."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
# Holds the id of the process that has changed its interpreter already.
_CONTINUED = "BENCH_CONTINUED"
_WORK = Path(
    os.environ.get("BENCH_WORK") or Path(tempfile.gettempdir()) / "peers-bench"
)


def continue_with_project() -> None:
    """Go on as the checkout's own interpreter, or the one that BENCH_ACW_PYTHON names."""
    _continue_with("BENCH_ACW_PYTHON", CHECKOUT / ".venv" / "bin" / "python")


def continue_with_newer() -> None:
    """Go on as the interpreter that run.sh has installed the newer peers for, or BENCH_MORE_PYTHON."""
    _continue_with("BENCH_MORE_PYTHON", _WORK / "venv-more" / "bin" / "python")


def continue_with_newest() -> None:
    """The same with an interpreter of Python 3.14, or BENCH_NEWEST_PYTHON."""
    _continue_with("BENCH_NEWEST_PYTHON", _WORK / "venv-newest" / "bin" / "python")


def _continue_with(variable: str, usual: Path) -> None:
    """Replace this process, keeping its id; returns only in the interpreter that is wanted."""
    wanted = Path(os.environ.get(variable) or usual)
    if os.environ.get(_CONTINUED) == str(os.getpid()):
        return
    if not wanted.exists():
        sys.exit(
            f"{wanted} is missing: run.sh makes it; {variable} names another interpreter"
        )
    os.environ[_CONTINUED] = str(os.getpid())
    os.execv(wanted, [str(wanted), *sys.argv])  # noqa: S606 - there is no shell to start
