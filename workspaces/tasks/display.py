"""How tasks are shown on a command line: as tables for people, as JSON for agents.

What is shown was written by others: credentials in URLs are redacted, and what could move a terminal's cursor is escaped.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from jobs.display import duration, first_line
from jobs.durations import written
from jobs.redaction import redact, storable
from jobs.tables import Writes, cell, print_table, printable
from workspaces.tasks import deadlines
from workspaces.tasks.models import Task

BLOCK_LIMIT = 20_000
"""Characters of a text that are printed for people; JSON has all of it."""

_LIMITED = {
    "submissions": "submissions",
    "checkpoints": "checkpoints",
    "history": "events",
}

LIST_HEADERS = (
    "ID",
    "STATUS",
    "TEMPLATE",
    "TITLE",
    "PUBLISHER",
    "HOLDER",
    "WORKSPACE",
    "NEXT",
    "AT",
)


def redacted(value: Any) -> Any:
    """The value with URLs redacted in every text in it."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: redacted(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    return value


def listed(task: Task) -> dict[str, Any]:
    """A task as ``list`` gives it in JSON; it was read with its people, transfer and workspace."""
    live = min(deadlines.live(task), key=lambda one: one.at, default=None)
    return {
        "id": task.pk,
        "title": redact(task.title),
        "template": task.template,
        "status": task.status,
        "publisher": str(task.publisher),
        "holder": str(task.holder) if task.holder is not None else None,
        "workspace": task.workspace.name if task.workspace is not None else None,
        "next_deadline": {"action": live.action, "at": live.at} if live else None,
        "created_at": task.created_at,
        "updated_at": task.updated_at,
        "ended_at": task.ended_at,
    }


def list_row(task: Task) -> tuple[object, ...]:
    """A task as a row below ``LIST_HEADERS``."""
    said = listed(task)
    following = said["next_deadline"] or {"action": None, "at": None}
    return (
        said["id"],
        said["status"],
        said["template"],
        said["title"],
        said["publisher"],
        said["holder"],
        said["workspace"],
        following["action"],
        following["at"],
    )


def print_task(stdout: Writes, said: Mapping[str, Any], *, now: dt.datetime) -> None:
    """Print all that :func:`workspaces.tasks.lookup.shown` says of a task."""
    print_table(stdout, ("FIELD", "VALUE"), _fields(said))
    _print_block(stdout, "Description:", said["description"])
    if said["checklist"]:
        stdout.write("\nChecklist:\n")
        for number, item in enumerate(said["checklist"], 1):
            stdout.write(f"  {number}. {printable(item)}\n")
    stdout.write("\n")
    print_table(
        stdout,
        ("DEADLINE", "AT", "IN", "ACTION", "WHAT IT DOES", "JOB"),
        [_deadline(deadline, now) for deadline in said["deadlines"]],
        empty="no deadline is pending",
    )
    stdout.write("\n")
    _print_submissions(stdout, said["submissions"])
    stdout.write("\n")
    print_table(
        stdout,
        ("CHECKPOINT", "AT", "BY", "NOTE"),
        [
            (row["id"], row["created_at"], row["agent"], first_line(row["note"]))
            for row in said["checkpoints"]
        ],
        empty="no checkpoints",
    )
    stdout.write("\n")
    print_table(
        stdout,
        ("TIME", "ACTION", "BY", "STATUS", "WITH"),
        [_event(event) for event in said["history"]],
    )
    for event in said["history"]:
        if opinion := event["data"].get("opinion"):
            _print_block(stdout, f"Opinion of {cell(event['created_at'])}:", opinion)
    for name, what in _LIMITED.items():
        if left_out := said[f"earlier_{name}"]:
            stdout.write(
                f"{left_out} earlier {what} are not shown; --limit N shows more\n"
            )


def _fields(said: Mapping[str, Any]) -> list[tuple[str, object]]:
    worktree = said["worktree"] or {}
    fields: list[tuple[str, object]] = [
        (name, said[name])
        for name in (
            "id",
            "title",
            "template",
            "status",
            "publisher",
            "holder",
            "workspace",
        )
    ]
    if worktree:
        fields.append(("worktree", f"{worktree['id']}: {worktree['path']}"))
    if transfer := said["transfer"]:
        until = cell(transfer["expires_at"])
        fields.append(("offered to", f"{transfer['to']}, until {until}"))
        fields.append(("offered with", transfer["note"]))
    if said["template"] == "direct":
        fields += [
            ("misses", f"{said['misses']}, number {said['final_miss']} costs the task"),
            (
                "given back",
                f"{said['returns']} times, {said['returns_allowed']} allowed",
            ),
        ]
    terms = ("open_for", "hold_for", "checkpoint_every", "review_for")
    fields += [
        (name.replace("_", " "), written(said[name]))
        for name in terms
        if said[name] is not None
    ]
    return fields + [(name, said[name]) for name in ("created_at", "ended_at")]


def _deadline(deadline: Mapping[str, Any], now: dt.datetime) -> tuple[object, ...]:
    left = deadline["at"] - now
    job = deadline["job"]
    return (
        deadline["deadline"],
        deadline["at"],
        f"overdue by {duration(-left)}" if left < dt.timedelta(0) else duration(left),
        deadline["action"],
        deadline["says"],
        f"{job['id']} {job['status']}" if job else "missing",
    )


def _print_submissions(stdout: Writes, rows: Sequence[Mapping[str, Any]]) -> None:
    print_table(
        stdout,
        ("SUBMISSION", "AT", "BY", "DECISION", "DONE", "REFERENCE", "REASON"),
        [
            (
                row["id"],
                row["created_at"],
                row["agent"],
                row["decision"],
                row["done"],
                row["reference"],
                first_line(row["reason"]),
            )
            for row in rows
        ],
        empty="no submissions",
    )
    for row in rows:
        _print_block(stdout, f"Text of submission {row['id']}:", row["text"])


def _event(event: Mapping[str, Any]) -> tuple[object, ...]:
    source, target = event["source"], event["target"]
    facts = ", ".join(
        f"{name} {value}" for name, value in event["data"].items() if name != "opinion"
    )
    return (
        event["created_at"],
        event["action"],
        event["actor"],
        target if source in (None, target) else f"{source} → {target}",
        first_line(facts.replace("_", " ")),
    )


def _print_block(stdout: Writes, title: str, text: str) -> None:
    if text:
        stdout.write(f"\n{title}\n")
        for line in storable(text, BLOCK_LIMIT).splitlines():
            stdout.write(f"  {printable(line)}\n")
