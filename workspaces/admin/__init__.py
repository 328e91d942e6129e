"""How this app's tables look in the admin. What is done with them lives elsewhere."""

from __future__ import annotations

from workspaces.admin import conversation, workspace

__all__ = ["conversation", "workspace"]
