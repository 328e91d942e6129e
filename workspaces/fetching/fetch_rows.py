"""The two statements of a fetch after which nothing has turned, as plain SQL, over the worker thread's own connection.

Django takes longer to put such a statement together than the server to carry it out, and what a handler has used of
Django's connections is made as new after it: with a small repository, a tenth of the whole fetch.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DEFAULT_DB_ALIAS

from jobs import thread_connection
from jobs.riding import Write
from workspaces import remotes
from workspaces.fetching.fetch_schedule import OF_THE_REMOTE, REFUSALS
from workspaces.models import Workspace

MOST = 500
"""Workspaces of one remote that one job fetches; the others' turn comes with the next tick."""

_FIELDS = (
    "id",
    "name",
    "url",
    "host",
    "path",
    "default_branch",
    "state",
    "next_fetch_at",
    "fetch_problem",
    "failing_since",
    "remote_stamp",
    "approved_config",
    "tampered_config",
    "tampered_since",
)
_JSON = tuple(
    n
    for n, name in enumerate(_FIELDS)
    if name in {"approved_config", "tampered_config"}
)
_COLUMNS = ", ".join(f"workspaces.{name}" for name in _FIELDS)
_IS_DUE = "workspaces.next_fetch_at <= statement_timestamp()"
# What the last fetch left in the clone of a worktree's branch; most have no worktrees.
_BRANCHES = """
ARRAY(SELECT branch FROM workspace_worktrees WHERE workspace_id = workspaces.id)
"""

# Those of the same remote come along when they are due soon, and also when it was the remote that failed them. Where that is
# a path, no network is spared, and one job after the other would take longer than all at once.
_OF_REMOTE = f"""
SELECT {_COLUMNS}, {_IS_DUE}, {_BRANCHES}
FROM workspaces AS asked JOIN workspaces
    ON workspaces.host = asked.host AND md5(workspaces.url) = md5(asked.url) AND workspaces.url = asked.url
WHERE asked.id = %s AND workspaces.state = 'ready'
AND (
    workspaces.id = asked.id OR asked.url !~ '{remotes.PATHS}' AND (
        workspaces.next_fetch_at <= statement_timestamp() + make_interval(secs => %s)
        OR workspaces.fetch_problem = ANY(%s)
    )
)
AND NOT EXISTS (
    SELECT FROM workspace_worktrees WHERE workspace_id = workspaces.id AND held_by IS NOT NULL
)
ORDER BY workspaces.id <> asked.id, workspaces.id LIMIT {MOST}
"""  # noqa: S608 - the names are ours


class _Fetches(Write):
    """Of fetches that worked; each may have waited."""

    def parameters(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        now = time.monotonic()
        return super().parameters([{**row, "ago": now - row["ended"]} for row in rows])


# Looked up by ANY: the planner takes what comes from JSON for many rows, and would read the whole table for them.
_FETCHED = _Fetches(
    sql="""
WITH fetched AS MATERIALIZED (
    SELECT id, url, default_branch, next_in, statement_timestamp() - make_interval(secs => ago) AS ended_at
    FROM json_to_recordset(%(riding)s::json)
        AS fetched (id bigint, url text, default_branch text, next_in interval, ago float8)
)
UPDATE workspaces
SET last_fetched_at = ended_at, next_fetch_at = ended_at + next_in, last_fetch_error = ''
FROM fetched
WHERE workspaces.id = ANY (ARRAY(SELECT id FROM fetched)) AND workspaces.id = fetched.id
AND workspaces.failing_since IS NULL AND workspaces.default_branch = fetched.default_branch AND workspaces.url = fetched.url
AND coalesce(workspaces.last_fetched_at <= ended_at, TRUE)
RETURNING workspaces.id
"""
)

_ALONG = sorted({str(failure) for failure in OF_THE_REMOTE | REFUSALS})


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A workspace that is idle, with what a fetch needs of it: whether it is due, and its worktrees' branches."""

    workspace: Workspace
    is_due: bool = True
    branches: Sequence[str] = ()

    @property
    def is_parked(self) -> bool:
        return self.workspace.fetch_problem in REFUSALS


def find_idle(workspace_id: int, *, soon: dt.timedelta) -> list[Candidate]:
    """The workspace, unless it is gone, not cloned, or a worktree of it is held, and the idle ones of its remote on its host.

    Of these the ones that are due within ``soon``, or that the remote fails.
    """
    parameters = [workspace_id, soon.total_seconds(), _ALONG]
    return list(map(_candidate, thread_connection.execute(_OF_REMOTE, parameters)))


def _candidate(row: tuple[Any, ...]) -> Candidate:
    *values, is_due, branches = row
    for n in _JSON:
        values[n] = json.loads(values[n])
    workspace = Workspace.from_db(DEFAULT_DB_ALIAS, _FIELDS, values)
    return Candidate(workspace=workspace, is_due=is_due, branches=branches)


def record_fetched(
    workspace: Workspace, *, next_in: dt.timedelta, may_wait: bool = False
) -> bool:
    """Record a fetch that worked; False, and nothing is changed, where the last one had failed or the row is gone.

    With ``may_wait`` it is written together with the thread's next statement, as of now. Where something has turned by then (the remote's
    URL, say, or another fetch was recorded) nothing is, and a workspace that is due still is fetched again.
    """
    if workspace.failing_since is not None:
        return False
    row = {
        "id": workspace.pk,
        "url": workspace.url,
        "default_branch": workspace.default_branch,
        "next_in": f"{next_in.total_seconds():.6f} s",
        "ended": time.monotonic(),
    }
    if may_wait:
        thread_connection.ride_along(_FETCHED, row)
        return True
    return bool(thread_connection.execute(_FETCHED.sql, _FETCHED.parameters([row])))
