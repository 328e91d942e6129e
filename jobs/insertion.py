"""The INSERT of new jobs: one statement for any number of rows, on the caller's connection."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.utils import CursorWrapper

from jobs.wakeup import CHANNEL

Times = tuple[dt.datetime, dt.datetime]
"""When a new job is due, and when it was made."""


class Row(NamedTuple):
    """What is stored of a new job, checked; ``payload`` is JSON text, ``run_at`` None is now."""

    id: uuid.UUID
    type: str
    ref_id: str | None
    queue: str
    priority: int
    payload: str
    max_attempts: int
    run_at: dt.datetime | None
    unique_key: str | None


_KINDS = {
    "id": "uuid",
    "type": "text",
    "ref_id": "text",
    "queue": "text",
    "priority": "smallint",
    "payload": "jsonb",
    "max_attempts": "integer",
    "run_at": "timestamptz",
    "unique_key": "text",
}
_UNLESS_LIVE = """
ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL AND status IN ('pending', 'running') DO NOTHING
"""
# No JSON text holds this character as it is; of other texts it is made sure.
_SEPARATOR = "\x1f"
_JOINED = "string_to_array(%({name})s, E'\\x1f')"


def insert(
    rows: Sequence[Row], *, returning: bool, notify: bool = False
) -> Mapping[uuid.UUID, Times]:
    """Insert the rows, but those whose unique key is live.

    With ``returning``, the ids of the new jobs, each with its times; with ``notify`` too, the commit wakes the
    workers of their queues.
    """
    forms, values = _parameters(rows)
    keyed = any(row.unique_key is not None for row in rows)
    with _cursor() as cursor:
        cursor.execute(_statement(forms, keyed, returning, notify), values)
        found = cursor.fetchall() if returning else []
    # As texts, since the driver takes longer to set up its loaders of times than to insert a row.
    parse = dt.datetime.fromisoformat
    return {
        job_id: (parse(run_at), parse(created)) for job_id, run_at, created, *_ in found
    }


def _cursor() -> CursorWrapper:
    """Django's cursor in all but one thing: the server binds the values, where Django has each quoted into the text."""
    wrapper = connections[DEFAULT_DB_ALIAS]
    wrapper.close_if_health_check_failed()
    wrapper.ensure_connection()
    wrapper.validate_thread_sharing()
    cursor: Any = psycopg.Cursor(wrapper.connection)
    if wrapper.queries_logged:
        return wrapper.make_debug_cursor(cursor)
    return wrapper.make_cursor(cursor)


class _Form(Enum):
    """How a column's values are handed over."""

    DEFAULT = "the column's default, which null stands for in all rows"
    SAME = "one value, the same in all rows"
    ARRAY = "an array"
    JOINED = "one text, which takes a fraction of the time that an array of texts takes to make"


def _parameters(rows: Sequence[Row]) -> tuple[tuple[_Form, ...], dict[str, Any]]:
    if len(rows) == 1:
        (row,) = rows
        alone = [_Form.DEFAULT if value is None else _Form.SAME for value in row]
        return tuple(alone), row._asdict()
    columns = dict(zip(_KINDS, map(list, zip(*rows, strict=True)), strict=True))
    ids = _SEPARATOR.join([job_id.hex for job_id in columns.pop("id")])
    pairs = {"id": (_Form.JOINED, ids)}
    pairs |= {name: _parameter(column) for name, column in columns.items()}
    forms = tuple(form for form, _ in pairs.values())
    return forms, {name: value for name, (_, value) in pairs.items()}


def _parameter(column: list[Any]) -> tuple[_Form, Any]:
    if column.count(column[0]) == len(column):
        return (_Form.DEFAULT if column[0] is None else _Form.SAME), column[0]
    try:
        joined = _SEPARATOR.join(column)
    except TypeError:  # they are no texts, or not all of them are
        return _Form.ARRAY, column
    if joined.count(_SEPARATOR) >= len(column):
        return _Form.ARRAY, column
    return _Form.JOINED, joined


@lru_cache(maxsize=64)
def _statement(
    forms: tuple[_Form, ...], keyed: bool, returning: bool, notify: bool
) -> str:
    columns, selected, arrays, names = [], [], [], []
    for (name, kind), form in zip(_KINDS.items(), forms, strict=True):
        if form is _Form.DEFAULT:
            continue
        columns.append(name)
        value = (_JOINED if form is _Form.JOINED else "%({name})s").format(name=name)
        if form is _Form.SAME:
            expression = f"{value}::{kind}"
        else:
            expression = f"new.{name}"
            names.append(name)
            arrays.append(f"{value}::{kind}[]")
        if name == "run_at" and form is not _Form.SAME:
            expression = f"coalesce({expression}, statement_timestamp())"
        selected.append(expression)
    parts = [f"INSERT INTO jobs ({', '.join(columns)})"]
    if arrays:
        parts.append(f"SELECT {', '.join(selected)}")
        parts.append(f"FROM unnest({', '.join(arrays)}) AS new ({', '.join(names)})")
    else:
        # Without casts, which the server would plan and evaluate for each job that comes alone.
        parts.append(f"VALUES ({', '.join(f'%({name})s' for name in columns)})")
    if keyed:
        if _Form.SAME is not forms[-1]:
            # All who insert the same keys wait for each other in the same order, and so never in a circle.
            parts.append("ORDER BY new.unique_key, new.id")
        parts.append(_UNLESS_LIVE)
    if returning:
        parts.append("RETURNING id, run_at::text, created_at::text")
    if notify:
        parts.append(f", pg_notify('{CHANNEL}', json_build_array(queue)::text)")
    return " ".join(parts)
