"""The state machine drawn from its table: as diagrams and as a table, in Markdown.

``docs/tasks.md`` holds what :func:`drawn` gives between two comments, and ``manage.py task diagram --write`` renews it there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from workspaces.tasks.states import Deadline, Status, Template
from workspaces.tasks.transition import Transition, reachable
from workspaces.tasks.transitions import TRANSITIONS

BEGIN = "<!-- Drawn by `manage.py task diagram`: begin -->"
END = "<!-- Drawn by `manage.py task diagram`: end -->"
_PLACE = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)

_HEADERS = (
    "action",
    "by",
    "from",
    "to",
    "template",
    "until",
    "from then on",
    "where",
    "topic",
    "told",
)


def drawn(rows: Sequence[Transition] = TRANSITIONS) -> str:
    """A diagram for each template, and the whole table."""
    parts = [
        f"A `{template}` task:\n\n{_diagram(template, rows)}" for template in Template
    ]
    return "\n\n".join([*parts, _table(rows)])


def write(path: Path) -> bool:
    """Put it between the two comments in a file, and return whether that changed it.

    Raises OSError, and ValueError where the comments are not there, or not once.
    """
    before = path.read_text(encoding="utf-8")
    after = placed(before)
    if after != before:
        path.write_text(after, encoding="utf-8")
    return after != before


def placed(text: str) -> str:
    """``text`` with the drawing between the two comments in it; raises ValueError where they are not there once."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or not _PLACE.search(text):
        raise ValueError(f"it must have, once and in this order, {BEGIN} and {END}")
    return _PLACE.sub(lambda _: f"{BEGIN}\n\n{drawn()}\n\n{END}", text)


def _diagram(template: Template, rows: Iterable[Transition]) -> str:
    """One arrow for each pair of statuses, with the actions that lead along it; those that lead nowhere stand in the box."""
    arrows: dict[tuple[Status | None, Status], list[str]] = {}
    for row in rows:
        if row.template in (None, template):
            actions = arrows.setdefault((row.source, row.target), [])
            if row.action not in actions:
                actions.append(row.action.value)
    statuses = reachable(template, rows)
    lines: list[str] = []
    for (source, target), actions in arrows.items():
        if source not in statuses:
            continue
        if source == target:
            # The first line of a box is its title.
            lines += [f"    {source}: {line}" for line in (source, *actions)]
        else:
            lines.append(f"    {source or '[*]'} --> {target}: {', '.join(actions)}")
    head = ["```mermaid", "stateDiagram-v2", "    direction LR"]
    return "\n".join([*head, *lines, "```"])


def _table(rows: Iterable[Transition]) -> str:
    lines = [_line(_HEADERS), _line(["---"] * len(_HEADERS))]
    return "\n".join([*lines, *(_line(_cells(row)) for row in rows)])


def _cells(row: Transition) -> tuple[str, ...]:
    return (
        _code(row.action),
        row.by.value,
        _code(row.source),
        _code(row.target),
        _code(row.template),
        _codes(row.before),
        _code(row.after),
        row.when.says if row.when is not None else "",
        _code(row.topic.name if row.topic is not None else None),
        ", ".join(party.value for party in row.tells),
    )


def _codes(deadlines: Iterable[Deadline]) -> str:
    return ", ".join(_code(deadline) for deadline in deadlines)


def _code(name: str | None) -> str:
    return f"`{name}`" if name is not None else ""


def _line(cells: Iterable[str]) -> str:
    return "".join(f"| {cell} " if cell else "| " for cell in cells) + "|"
