from __future__ import annotations

from django.apps import AppConfig


class TasksConfig(AppConfig):
    name = "workspaces.tasks"
    label = "tasks"
    verbose_name = "Tasks"

    def ready(self) -> None:
        from workspaces.tasks import checks  # noqa: F401 (registers the system checks)
