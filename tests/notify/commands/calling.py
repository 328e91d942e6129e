"""The command, as an operator calls it."""

from __future__ import annotations

import io

from django.core.management import call_command


def webhook(*arguments: str) -> str:
    """What it prints."""
    stdout = io.StringIO()
    call_command("webhook", *arguments, stdout=stdout)
    return stdout.getvalue()
