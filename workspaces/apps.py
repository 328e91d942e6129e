from __future__ import annotations

from django.apps import AppConfig


class WorkspacesConfig(AppConfig):
    name = "workspaces"
    verbose_name = "Workspaces"

    def ready(self) -> None:
        from jobs.signals import job_dead
        from workspaces import checks, receivers  # noqa: F401 (checks registers itself)

        job_dead.connect(receivers.on_job_dead, dispatch_uid="workspaces.job_dead")
