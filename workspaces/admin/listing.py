"""What the lists of all that belongs to workspaces have in common."""

from __future__ import annotations

from typing import TypeVar

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from jobs.admin_verbs import VerbAdmin
from workspaces.admin import pieces
from workspaces.models import Worktree, WorktreeArchive

RowT = TypeVar("RowT", Worktree, WorktreeArchive)


class OfWorkspace(VerbAdmin[RowT]):
    """A list to which a workspace's page leads, with its workspace and host in each row."""

    def lookup_allowed(
        self, lookup: str, value: str, request: HttpRequest | None = None
    ) -> bool:
        if lookup == "workspace__id__exact":
            return True
        return super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type] # never None in 5.2

    @admin.display(description="workspace")
    def workspace_link(self, row: RowT) -> SafeString:
        return pieces.link("workspaces_workspace", row.workspace.pk, row.workspace.name)

    @admin.display(description="host")
    def host(self, row: RowT) -> SafeString:
        return pieces.host(row.workspace.host)
