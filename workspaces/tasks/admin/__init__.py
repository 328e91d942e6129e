"""How tasks and agents look in the admin. What is done with them lives elsewhere."""

from __future__ import annotations

from workspaces.tasks.admin import agent, task

__all__ = ["agent", "task"]
