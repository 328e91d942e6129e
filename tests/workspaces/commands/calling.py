"""The commands, as an operator calls them."""

from __future__ import annotations

import io

from django.core.management import call_command


def workspace(*arguments: str) -> str:
    """What ``manage.py workspace`` prints."""
    stdout = io.StringIO()
    call_command("workspace", *arguments, stdout=stdout)
    return stdout.getvalue()
