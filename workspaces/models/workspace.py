"""Workspaces and their worktrees: fields, constraints, indexes. What is done with them lives elsewhere.

Every time is the database's, so that no host's clock decides anything.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Now

from workspaces import paths
from workspaces.exceptions import InvalidName
from workspaces.querysets import WorkspaceQuerySet, WorktreeQuerySet
from workspaces.remotes import URL_MAX_LENGTH

HOST_MAX_LENGTH = 255
BRANCH_MAX_LENGTH = 200
HOLDER_MAX_LENGTH = 200


def validate_name(value: str) -> None:
    try:
        paths.check_name(value)
    except InvalidName as error:
        raise ValidationError(str(error)) from None


class Workspace(models.Model):
    """A clone of a remote, on one host, which alone works on it."""

    name = models.CharField(
        max_length=paths.NAME_MAX_LENGTH, unique=True, validators=[validate_name]
    )
    url = models.CharField(max_length=URL_MAX_LENGTH)
    host = models.CharField(max_length=HOST_MAX_LENGTH)
    path = models.CharField(max_length=paths.PATH_MAX_LENGTH)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="workspaces",
        help_text="Is told what concerns the workspace; where there is none, every admin is.",
    )
    default_branch = models.CharField(
        max_length=BRANCH_MAX_LENGTH, blank=True, db_default=""
    )
    last_fetched_at = models.DateTimeField(null=True, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)
    last_fetch_error = models.TextField(blank=True, db_default="")
    created_at = models.DateTimeField(db_default=Now())

    objects: ClassVar[WorkspaceQuerySet] = WorkspaceQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        db_table = "workspaces"
        ordering = ["name"]
        permissions = [("fetch_workspace", "Can have workspaces fetched now")]

    def __str__(self) -> str:
        return self.name


class Worktree(models.Model):
    """A git worktree of a workspace, held by at most one holder at a time."""

    class State(models.TextChoices):
        """What is being done with its directory; the repository's lock is held meanwhile.

        Whoever has that lock and sees ``CREATING`` or ``PRUNING`` knows that who began it is dead.
        """

        CREATING = "creating"
        READY = "ready"
        PRUNING = "pruning"

    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="worktrees"
    )
    path = models.CharField(max_length=paths.PATH_MAX_LENGTH, unique=True)
    branch = models.CharField(max_length=BRANCH_MAX_LENGTH)
    state = models.CharField(max_length=8, choices=State, db_default=State.READY)
    last_used_at = models.DateTimeField(db_default=Now())
    prune_warning_at = models.DateTimeField(null=True, blank=True)
    prune_blocked_at = models.DateTimeField(null=True, blank=True)
    prune_blocked_reason = models.TextField(blank=True, db_default="")
    held_by = models.CharField(max_length=HOLDER_MAX_LENGTH, null=True, blank=True)
    held_since = models.DateTimeField(null=True, blank=True)
    last_held_by = models.CharField(
        max_length=HOLDER_MAX_LENGTH, blank=True, db_default=""
    )
    created_at = models.DateTimeField(db_default=Now())

    objects: ClassVar[WorktreeQuerySet] = WorktreeQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        db_table = "workspace_worktrees"
        ordering = ["id"]
        permissions = [("release_worktree", "Can release held worktrees")]
        indexes = [
            # The prune runner walks it; what is held is not in it.
            models.Index(
                fields=["last_used_at"],
                name="worktrees_idle",
                condition=models.Q(held_by__isnull=True),
            ),
        ]
        constraints = [
            # As in git, which checks a branch out in one worktree only.
            models.UniqueConstraint(
                fields=["workspace", "branch"], name="worktrees_branch_once"
            ),
            models.CheckConstraint(
                name="worktrees_held_by_with_since",
                condition=models.Q(held_by__isnull=True, held_since__isnull=True)
                | models.Q(held_by__isnull=False, held_since__isnull=False),
            ),
            models.CheckConstraint(
                name="worktrees_held_only_when_ready",
                condition=models.Q(held_by__isnull=True) | models.Q(state="ready"),
            ),
        ]

    def __str__(self) -> str:
        return f"worktree {self.pk} ({self.branch})"
