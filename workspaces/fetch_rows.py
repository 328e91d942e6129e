"""The two statements of a fetch after which nothing has turned, as plain SQL.

Django takes longer to put such a statement together than the server to carry it out: with a small repository, a tenth
of the whole fetch.
"""

from __future__ import annotations

from django.db import connections, router

from workspaces.models import Workspace

_FIELDS = ("id", "name", "url", "host", "path", "default_branch", "failing_since")

_IDLE = f"""
SELECT {", ".join(_FIELDS)} FROM workspaces
WHERE id = %s AND NOT EXISTS (
    SELECT FROM workspace_worktrees WHERE workspace_id = workspaces.id AND held_by IS NOT NULL
)
"""  # noqa: S608 - the names are ours

_FETCHED = """
UPDATE workspaces SET last_fetched_at = statement_timestamp(), last_fetch_error = '', default_branch = %s
WHERE id = %s AND failing_since IS NULL
"""


def find_idle(workspace_id: int) -> Workspace | None:
    """The workspace, with what a fetch needs of it, unless it is gone or a worktree of it is held."""
    alias = router.db_for_read(Workspace)
    with connections[alias].cursor() as cursor:
        cursor.execute(_IDLE, [workspace_id])
        row = cursor.fetchone()
    return None if row is None else Workspace.from_db(alias, _FIELDS, row)


def record_fetched(workspace_id: int, *, default_branch: str) -> bool:
    """Record a fetch that worked; False, and nothing is changed, where the last one had failed or the row is gone."""
    with connections[router.db_for_write(Workspace)].cursor() as cursor:
        cursor.execute(_FETCHED, [default_branch, workspace_id])
        recorded: int = cursor.rowcount
    return recorded > 0
