"""What is known of each host that has workspaces: fields. What is done with it lives elsewhere."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from workspaces.models.workspace import HOST_MAX_LENGTH

MARK_LENGTH = 32


class WorkspaceHost(models.Model):
    """A host's data directory: how reconciliation knows it again, and what the last pass over it came to.

    ``mark`` is what a file in the directory says as well: where the two differ, this is another disk, or another database.
    ``stopped_at`` is set while reconciliation has stopped itself. ``disk_free`` and ``disk_total`` are in bytes.
    """

    host = models.CharField(max_length=HOST_MAX_LENGTH, unique=True)
    mark = models.CharField(max_length=MARK_LENGTH, blank=True, db_default="")
    looked_at = models.DateTimeField(null=True, blank=True)
    stopped_at = models.DateTimeField(null=True, blank=True)
    stopped_reason = models.TextField(blank=True, db_default="")
    disk_free = models.BigIntegerField(null=True, blank=True)
    disk_total = models.BigIntegerField(null=True, blank=True)
    # Directories that no row has, and how many worktrees and clones are not as they should be: what the doctor tells.
    found = models.JSONField(default=dict, db_default={}, blank=True)

    objects: ClassVar[models.Manager[WorkspaceHost]] = models.Manager()

    class Meta:
        db_table = "workspace_hosts"
        ordering = ["host"]

    def __str__(self) -> str:
        return self.host
