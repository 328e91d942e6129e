from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules


class NotifyConfig(AppConfig):
    name = "notify"
    verbose_name = "Notifications and webhooks"

    def ready(self) -> None:
        from jobs.signals import job_dead, operator_acted
        from notify import checks, endpoints, receivers  # noqa: F401 (checks registers itself)
        from notify.recovering import slices  # noqa: F401 (and its handler)

        autodiscover_modules("topics")
        job_dead.connect(receivers.on_job_dead, dispatch_uid="notify.job_dead")
        operator_acted.connect(
            receivers.on_operator_acted, dispatch_uid="notify.operator_acted"
        )
        post_migrate.connect(
            endpoints.create_first, sender=self, dispatch_uid="notify.first_endpoint"
        )
