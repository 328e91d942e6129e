"""Workspaces and their worktrees: fields, constraints, indexes. What is done with them lives elsewhere.

Every time is the database's, so that no host's clock decides anything.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import MD5, Now

from jobs.display import seen
from workspaces import paths
from workspaces.exceptions import InvalidName
from workspaces.failures import Failure
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
    """A clone of a remote, on one host, which alone works on it.

    ``next_fetch_at`` says when it is due, whatever ``fetch_problem`` it has; ``failure_told_at`` is set while its people
    know of the problem, so that nothing is told twice. ``remote_stamp`` is what the last refusal depended on (the URL, this
    host's keys): while it is the same, asking again is pointless.
    """

    class State(models.TextChoices):
        """Whether its clone is there. What is not ``READY`` is neither fetched nor worked in."""

        CLONING = "cloning"
        READY = "ready"
        FAILED = "failed"

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
    state = models.CharField(max_length=8, choices=State, db_default=State.READY)
    clone_progress = models.CharField(max_length=200, blank=True, db_default="")
    last_fetched_at = models.DateTimeField(null=True, blank=True)
    next_fetch_at = models.DateTimeField(db_default=Now())
    fetch_problem = models.CharField(
        max_length=20, choices=Failure, blank=True, db_default=""
    )
    fetch_failures = models.IntegerField(db_default=0)
    failing_since = models.DateTimeField(null=True, blank=True)
    failure_told_at = models.DateTimeField(null=True, blank=True)
    last_fetch_error = models.TextField(blank=True, db_default="")
    remote_stamp = models.CharField(max_length=64, blank=True, db_default="")
    healed_at = models.DateTimeField(null=True, blank=True)
    # Keys and values of the clone's configuration that an operator has approved.
    approved_config = models.JSONField(default=list, db_default=[], blank=True)
    # Those that were found and are not approved; empty: none.
    tampered_config = models.JSONField(default=list, db_default=[], blank=True)
    tampered_since = models.DateTimeField(null=True, blank=True)
    # With its worktrees; `clone_bytes` without them.
    size_bytes = models.BigIntegerField(null=True, blank=True)
    clone_bytes = models.BigIntegerField(null=True, blank=True)
    sized_at = models.DateTimeField(null=True, blank=True)
    quota_told_at = models.DateTimeField(null=True, blank=True)
    maintained_at = models.DateTimeField(null=True, blank=True)
    # When all of its objects were last found to be there.
    checked_at = models.DateTimeField(null=True, blank=True)
    maintenance_error = models.TextField(blank=True, db_default="")
    created_at = models.DateTimeField(db_default=Now())

    objects: ClassVar[WorkspaceQuerySet] = WorkspaceQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        db_table = "workspaces"
        ordering = ["name"]
        permissions = [
            ("fetch_workspace", "Can have workspaces fetched now"),
            ("approve_workspace", "Can approve a clone's configuration"),
        ]
        indexes = [
            # Those of one remote are fetched together. A URL may be too long for an index, and a generated column
            # has Django ask the server at every system check, also where there is none yet.
            models.Index("host", MD5("url"), name="workspaces_remote"),
        ]

    def __str__(self) -> str:
        return self.name


class Worktree(models.Model):
    """A git worktree of a workspace, held by at most one holder at a time.

    A hold is a lease: it ends at ``lease_expires_at``, if it has one, unless its holder sends heartbeats. ``fencing_no`` grows with every
    hold, so that what names an earlier one changes nothing.
    """

    class State(models.TextChoices):
        """What is being done with its directory; the repository's lock is held meanwhile.

        Whoever has that lock and sees ``CREATING`` or ``PRUNING`` knows that who began it is dead.
        """

        CREATING = "creating"
        READY = "ready"
        PRUNING = "pruning"
        RESTORING = "restoring"
        # Not for moments: what reconciliation found, until somebody or an acquire mends it.
        MISSING = "missing"
        QUARANTINED = "quarantined"

    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="worktrees"
    )
    path = models.CharField(max_length=paths.PATH_MAX_LENGTH, unique=True)
    branch = models.CharField(max_length=BRANCH_MAX_LENGTH)
    state = models.CharField(max_length=12, choices=State, db_default=State.READY)
    state_reason = models.TextField(blank=True, db_default="")
    last_used_at = models.DateTimeField(db_default=Now())
    prune_warning_at = models.DateTimeField(null=True, blank=True)
    prune_blocked_at = models.DateTimeField(null=True, blank=True)
    prune_blocked_reason = models.TextField(blank=True, db_default="")
    held_by = models.CharField(max_length=HOLDER_MAX_LENGTH, null=True, blank=True)
    held_since = models.DateTimeField(null=True, blank=True)
    last_held_by = models.CharField(
        max_length=HOLDER_MAX_LENGTH, blank=True, db_default=""
    )
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    fencing_no = models.BigIntegerField(db_default=0)
    # When a use was last seen, whatever was made of last_used_at by hand since: what is done in its directory after that
    # without a hold counts as use too.
    use_seen_at = models.DateTimeField(db_default=Now())
    # Not pruned before; pinned: not at all.
    kept_until = models.DateTimeField(null=True, blank=True)
    pinned = models.BooleanField(db_default=False)
    upstream_gone_at = models.DateTimeField(null=True, blank=True)
    size_bytes = models.BigIntegerField(null=True, blank=True)
    sized_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    objects: ClassVar[WorktreeQuerySet] = WorktreeQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        db_table = "workspace_worktrees"
        ordering = ["id"]
        permissions = [
            ("release_worktree", "Can release held worktrees"),
            ("keep_worktree", "Can keep, pin and archive worktrees"),
        ]
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
                condition=models.Q(
                    held_by__isnull=True,
                    held_since__isnull=True,
                    heartbeat_at__isnull=True,
                    lease_expires_at__isnull=True,
                )
                # Without an expiry it is held until it is released.
                | models.Q(held_by__isnull=False, held_since__isnull=False),
            ),
            models.CheckConstraint(
                name="worktrees_held_only_when_ready",
                condition=models.Q(held_by__isnull=True) | models.Q(state="ready"),
            ),
        ]

    def __str__(self) -> str:
        return f"worktree {self.pk} ({seen(self.branch)})"
