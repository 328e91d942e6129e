"""The buttons of a worktree's page and the actions of their list. Each is audited where it is done."""

from __future__ import annotations

from jobs.admin_verbs import Verb
from workspaces import actions, keeping
from workspaces.admin import acting
from workspaces.models import Worktree

VERBS: tuple[Verb[Worktree], ...] = (
    Verb(
        name="release",
        label="Release",
        permission="workspaces.release_worktree",
        act=acting.each(
            "released",
            lambda row, *, actor: actions.release(row.pk, actor=actor),
        ),
        applies=lambda row: row.held_by is not None,
        note="Whoever holds them loses them; their files stay.",
    ),
    Verb(
        name="keep",
        label="Keep 30 days",
        permission="workspaces.keep_worktree",
        act=acting.each(
            "kept", lambda row, *, actor: keeping.keep(row.pk, actor=actor)
        ),
        applies=lambda row: not row.pinned,
    ),
    Verb(
        name="pin",
        label="Pin",
        permission="workspaces.keep_worktree",
        act=acting.each(
            "pinned", lambda row, *, actor: keeping.pin(row.pk, actor=actor)
        ),
        applies=lambda row: not row.pinned,
        note="Pinned ones are not pruned until they are unpinned.",
    ),
    Verb(
        name="unpin",
        label="Unpin",
        permission="workspaces.keep_worktree",
        act=acting.each(
            "unpinned", lambda row, *, actor: keeping.unpin(row.pk, actor=actor)
        ),
        applies=lambda row: row.pinned,
    ),
    Verb(
        name="archive",
        label="Archive now",
        permission="workspaces.keep_worktree",
        act=acting.each(
            "to be archived by the host that has them",
            lambda row, *, actor: keeping.archive_now(row.pk, actor=actor),
        ),
        applies=lambda row: (
            row.held_by is None and row.state == Worktree.State.READY and not row.pinned
        ),
        note="Each is archived, the archive is verified, and its directory is removed. It can be restored.",
    ),
)
