from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = "Jobs"

    def ready(self) -> None:
        from jobs import checks  # noqa: F401 (registers the system checks)

        autodiscover_modules("handlers", "runners", "probes", "subcommands")
