"""Django's entry points: the console in place of the stock admin, and ACW's own app."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin import apps as admin


class ConsoleConfig(admin.AdminConfig):
    """The admin with ACW's site: stands in INSTALLED_APPS for django.contrib.admin."""

    default = False
    default_site = "acw.console.ConsoleSite"


class AcwConfig(AppConfig):
    """The composition root."""

    name = "acw"
    verbose_name = "ACW"
    default = True

    def ready(self) -> None:
        from acw import checks  # noqa: F401 - registers them
