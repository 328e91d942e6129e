"""The commands, as an operator calls them."""

from __future__ import annotations

import io

from django.core.management import call_command


def workspace(*arguments: object) -> str:
    """What ``manage.py workspace`` prints."""
    return _printed("workspace", arguments)


def worktree(*arguments: object) -> str:
    """What ``manage.py worktree`` prints."""
    return _printed("worktree", arguments)


def _printed(command: str, arguments: tuple[object, ...]) -> str:
    stdout = io.StringIO()
    call_command(command, *map(str, arguments), stdout=stdout)
    return stdout.getvalue()
