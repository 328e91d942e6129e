#!/usr/bin/env python
"""ACW's command line: `python manage.py help` lists the commands."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "acw.settings")
    try:
        from django.conf import settings
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
    except ModuleNotFoundError as error:
        sys.exit(
            f"manage.py: {error}. Run `make setup`, then .venv/bin/python manage.py …"
        )
    try:
        # Read here, before any command: some would go on without settings.
        settings.INSTALLED_APPS  # noqa: B018
    except ImproperlyConfigured as error:
        sys.exit(f"manage.py: {error}")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
