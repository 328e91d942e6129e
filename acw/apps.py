"""Django's entry points: the console in place of the stock admin, and ACW's own app."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.contrib import admin
from django.contrib.admin import checks as admin_checks
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.options import BaseModelAdmin
from django.core import checks
from django.core.paginator import Paginator
from django.forms.models import BaseModelForm

# So that `admin.ModelAdmin[Job]` can be written; Django itself cannot subscript these.
for _class in (BaseModelAdmin, BaseModelForm, Paginator):
    _class.__class_getitem__ = classmethod(lambda cls, *_: cls)  # type: ignore[union-attr]


class ConsoleConfig(SimpleAdminConfig):
    """The admin with ACW's site: stands in INSTALLED_APPS for django.contrib.admin.

    What the apps show in it is loaded with `acw.urls`, and so only by what serves pages:
    a worker does without.
    """

    default = False
    default_site = "acw.console.ConsoleSite"

    def ready(self) -> None:
        # In place of Django's own two, which take it that the site is filled already.
        checks.register(admin_checks.check_dependencies, checks.Tags.admin)
        checks.register(_check_console, checks.Tags.admin)


def _check_console(
    app_configs: Sequence[AppConfig] | None, **options: Any
) -> list[checks.CheckMessage]:
    """Django's checks of the admin, with the site filled."""
    admin.autodiscover()
    return admin_checks.check_admin_app(app_configs, **options)


class AcwConfig(AppConfig):
    """The composition root."""

    name = "acw"
    verbose_name = "ACW"
    default = True

    def ready(self) -> None:
        from acw import checks  # noqa: F401 - registers them
