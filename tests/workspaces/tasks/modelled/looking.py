"""The tables at one moment, in one statement, with their times in the model's count."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db import connection

TYPES = [
    "open_expire",
    "hold_timeout",
    "checkpoint_miss",
    "contest_close",
    "checkpoint_warn",
    "review_warn",
    "transfer_expire",
    "review_auto_accept",
]
_LOOK = """
WITH delivered AS (
    DELETE FROM jobs WHERE type = 'webhook.deliver'
    RETURNING (payload->>'body')::jsonb->'data'->>'task_id' AS task, payload->>'topic' AS topic
)
SELECT json_build_object(
    'tasks', (
        SELECT json_agg(json_build_array(t.id, status, publisher_id, holder_id, misses, returns, w.branch,
            open_until, hold_until, checkpoint_warn_at, checkpoint_due_at, review_warn_at, review_until, ended_at))
        FROM tasks t LEFT JOIN workspace_worktrees w ON w.id = t.worktree_id
    ),
    'entries', (
        SELECT json_agg(json_build_array(id, task_id, agent_id, decision, decided_at IS NOT NULL)) FROM task_submissions
    ),
    'offers', (SELECT json_agg(json_build_array(id, task_id, to_agent_id, status, expires_at)) FROM task_transfers),
    'worktrees', (SELECT json_agg(json_build_array(branch, held_by)) FROM workspace_worktrees),
    'events', (
        SELECT json_agg(json_build_array(id, task_id, action, source, target, actor, created_at) ORDER BY id)
        FROM task_events WHERE id > %s
    ),
    'told', (
        SELECT json_agg(json_build_array(n.id, (data->>'task_id')::bigint, topic, username))
        FROM notifications n JOIN auth_user u ON u.id = user_id WHERE n.id > %s
    ),
    'delivered', (SELECT json_agg(json_build_array(task::bigint, topic)) FROM delivered)
)::text
"""
_JOBS = """
SELECT ref_id::bigint, type, payload->>'deadline', status, run_at, attempts, id FROM jobs
WHERE type = ANY(%s) ORDER BY 1, 2, 3, 4, 5
"""


class JobRow(NamedTuple):
    """``deadline`` is what its payload says, ``run_at`` what the queue goes by."""

    task: int
    type: str
    deadline: dt.datetime | None
    status: str
    run_at: dt.datetime
    attempts: int
    id: uuid.UUID

    @property
    def live(self) -> bool:
        return self.status in ("pending", "running")


class Tables(NamedTuple):
    """What stands in them; of the histories and of what was told, only what is new."""

    tasks: dict[int, list[Any]]
    entries: dict[int, tuple[Any, ...]]
    offers: dict[int, tuple[Any, ...]]
    worktrees: dict[str, str | None]
    events: list[tuple[Any, ...]]
    told: list[tuple[Any, ...]]
    delivered: list[tuple[Any, ...]]


def rows(statement: str, *parameters: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description is not None else []


def servers_time() -> dt.datetime:
    ((at,),) = rows("SELECT clock_timestamp()")
    assert isinstance(at, dt.datetime)
    return at


class Onlooker:
    """``names`` are the agents' by their ids; ``passed`` is by how much the tables have been aged."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self.names = names
        self.passed = dt.timedelta(0)
        ((self.last_event, self.last_told),) = rows(
            "SELECT (SELECT coalesce(max(id), 0) FROM task_events), (SELECT coalesce(max(id), 0) FROM notifications)"
        )

    def time(self, written: str | None) -> dt.datetime | None:
        return dt.datetime.fromisoformat(written) + self.passed if written else None

    def look(self) -> Tables:
        ((text,),) = rows(_LOOK, self.last_event, self.last_told)
        found = {name: each or [] for name, each in json.loads(text).items()}
        if found["events"]:
            self.last_event = found["events"][-1][0]
        self.last_told = max([row[0] for row in found["told"]], default=self.last_told)
        names = self.names
        return Tables(
            tasks={
                row[0]: [row[1], names[row[2]], names.get(row[3]), *row[4:7]]
                + [self.time(each) for each in row[7:]]
                for row in found["tasks"]
            },
            entries={
                row_id: (task, names[agent], *rest)
                for row_id, task, agent, *rest in found["entries"]
            },
            offers={
                row_id: (task, names[to], status, self.time(until))
                for row_id, task, to, status, until in found["offers"]
            },
            worktrees=dict(found["worktrees"]),
            events=[(*row[1:-1], self.time(row[-1])) for row in found["events"]],
            told=[tuple(row[1:]) for row in found["told"]],
            delivered=[tuple(row) for row in found["delivered"]],
        )

    def jobs(self) -> list[JobRow]:
        """The deadline jobs, whatever has become of them, in an order that is the same in each run."""
        return [
            JobRow(task, type_, self.time(deadline), *rest)
            for task, type_, deadline, *rest in rows(_JOBS, TYPES)
        ]
