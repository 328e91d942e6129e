"""Small writes that may wait for the next statement of their connection, to be one statement and one commit with it.

A commit costs the server as much as a short statement. What a handler writes at its end (that an attempt has ended, say)
is so written with its job's completion, in the same moment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

AFTER = "/* after what rides along */"
"""Stands at the end of a condition of whatever must happen after the waiting writes, not beside them."""

_WITH = "WITH "
_RECURSIVE = "WITH RECURSIVE"
_HAPPENED = "AND (SELECT count(*) FROM riding) >= 0"


@dataclass(frozen=True, kw_only=True)
class Write:
    """One kind of write: ``sql`` changes rows from ``%(riding)s``, a JSON array of objects, and returns something for each."""

    sql: str

    def parameters(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Those of the statement, for so many rows."""
        # In one text: the driver takes ten times as long over an array for each column.
        return {"riding": json.dumps(rows)}


class Riding:
    """What waits on one connection; of one kind at a time."""

    def __init__(self) -> None:
        self.write: Write | None = None
        self._rows: list[Mapping[str, Any]] = []

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add(self, write: Write, row: Mapping[str, Any]) -> None:
        """Have it wait. What waits already must be of the same kind."""
        self.write = write
        self._rows.append(row)

    def clear(self) -> None:
        """It has been written, or never can be."""
        self._rows.clear()

    def alone(self) -> tuple[str, dict[str, Any]]:
        """What waits, as a statement and its parameters."""
        assert self.write is not None  # noqa: S101 - asked for only where something waits
        return self.write.sql, self.write.parameters(self._rows)

    def together(
        self, query: str, parameters: object
    ) -> tuple[str, dict[str, Any]] | None:
        """What waits and ``query``, as one statement; None where they can't be one."""
        query = query.lstrip()
        if (
            not isinstance(parameters, dict)
            or not query.startswith(_WITH)
            or query.startswith(_RECURSIVE)
        ):
            return None
        sql, own = self.alone()
        rest = query[len(_WITH) :].replace(AFTER, _HAPPENED)
        return f"WITH riding AS ({sql}), {rest}", {**parameters, **own}
