"""What `jobs torture` prints: the figures, each promise with whether it was kept, and the rows that break one."""

from __future__ import annotations

from acw.torture.invariants import INVARIANTS, Violation
from acw.torture.run import Result
from jobs.tables import Writes, print_table

_TIMES = ("p50", "p99")


def print_result(stdout: Writes, result: Result) -> None:
    """For people."""
    rows = [(name, _number(name, value)) for name, value in result.figures.items()]
    print_table(stdout, ("figure", "value"), rows, empty="No figure.")
    stdout.write("\n")
    broken = {violation.name: violation for violation in result.violations}
    promises = [
        ("BROKEN" if invariant.name in broken else "kept", invariant.promise)
        for invariant in INVARIANTS
    ]
    print_table(stdout, ("", "promise"), promises, empty="No promise.")
    for violation in result.violations:
        _print_violation(stdout, violation)


def _print_violation(stdout: Writes, violation: Violation) -> None:
    stdout.write(f"\nBROKEN: {violation.promise}: {violation.count} rows\n")
    rows = [tuple(map(str, row)) for row in violation.rows]
    print_table(stdout, violation.columns, rows, empty="")


def _number(name: str, value: float) -> str:
    if name.endswith(_TIMES):
        return f"{value * 1000:,.1f} ms"
    return f"{value:,}" if value == int(value) else f"{value:,.1f}"
