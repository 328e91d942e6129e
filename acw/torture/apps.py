"""The torture as an app, in the processes that it starts."""

from __future__ import annotations

from django.apps import AppConfig

from acw.scratch import tether


class TortureConfig(AppConfig):
    """Ties the process to the one that has started it, however that ends."""

    name = "acw.torture"
    label = "torture"

    def ready(self) -> None:
        from acw.torture import settings

        if settings.TORTURE_TETHERED:
            tether.end_with_stdin()
