"""What `benchjobs` prints: under which conditions was measured, and the figures, for people or as JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import django
import psycopg

from acw.benchmark.figures import Figure
from jobs.tables import Writes, print_json, print_table

_HEADERS = ("figure", "median", "range", "unit", "ratio", "goal", "beside")
_DURABLE = ("fsync", "synchronous_commit", "full_page_writes")
_OFF = ("off", "local")


def conditions(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """The versions and settings without which no figure says anything."""
    shown = ("server_version", *_DURABLE, "shared_buffers")
    server = {name: _shown(connection, name) for name in shown}
    return {
        "PostgreSQL": server.pop("server_version"),
        "Python": platform.python_version(),
        "Django": django.get_version(),
        "psycopg": f"{psycopg.__version__} ({psycopg.pq.__impl__})",
        "cores": str(os.cpu_count()),
        **server,
    }


def caution(found: Mapping[str, str]) -> str:
    """A warning where the server does not wait for its disk; "" where it does."""
    off = [f"{name} is {found[name]}" for name in _DURABLE if found[name] in _OFF]
    if not off:
        return ""
    return f"{', '.join(off)}: these figures say nothing about commits that survive a crash"


def print_text(
    stdout: Writes, found: Mapping[str, str], figures: Sequence[Figure]
) -> None:
    """The conditions in a line, and one line for each figure."""
    stdout.write(", ".join(f"{name} {value}" for name, value in found.items()) + "\n")
    if warning := caution(found):
        stdout.write(f"Warning: {warning}.\n")
    stdout.write("\n")
    print_table(stdout, _HEADERS, map(_row, figures), empty="No figure.")


def print_as_json(
    stdout: Writes,
    found: Mapping[str, str],
    figures: Sequence[Figure],
    *,
    refused: Mapping[str, str],
) -> None:
    """The same, and what was refused with the reason, for a script."""
    print_json(
        stdout,
        {
            "conditions": found,
            "warning": caution(found),
            "figures": [_as_json(figure) for figure in figures],
            "refused": refused,
        },
    )


def number(value: float) -> str:
    """Three digits at least, and no more after the point than they need."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _row(figure: Figure) -> tuple[str, ...]:
    spread = ""
    if (
        figure.lowest is not None
        and figure.highest is not None
        and figure.lowest != figure.highest
    ):
        spread = f"{number(figure.lowest)} to {number(figure.highest)}"
    beside = figure.against
    if figure.ceiling is not None:
        beside = f"{beside} {number(figure.ceiling)}".strip()
    return (
        figure.name,
        number(figure.value),
        spread,
        figure.unit,
        "" if figure.ratio is None else f"{figure.ratio:.2f}",
        figure.goal,
        beside,
    )


def _as_json(figure: Figure) -> dict[str, object]:
    return {
        "name": figure.name,
        "value": figure.value,
        "lowest": figure.lowest,
        "highest": figure.highest,
        "unit": figure.unit,
        "ceiling": figure.ceiling,
        "against": figure.against,
        "ratio": figure.ratio,
        "ratios": list(figure.paired),
        "goal": figure.goal,
    }


def _shown(connection: psycopg.Connection[Any], name: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", [name]).fetchone()
    return str(row[0]) if row else ""
