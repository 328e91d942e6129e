"""System checks: what can be known of this host without a database."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register

from jobs.checks import WORKER
from workspaces import git
from workspaces.exceptions import GitError


@register(WORKER)
def check_git(**_: Any) -> list[CheckMessage]:
    """Git is there and knows what :mod:`workspaces.git` relies on."""
    oldest = ".".join(map(str, git.OLDEST_VERSION))
    hint = f"Install git {oldest} or newer and see that it is in PATH."
    try:
        found = git.version()
    except GitError as error:
        return [Error(str(error), hint=hint, id="workspaces.E001")]
    if found < git.OLDEST_VERSION:
        said = ".".join(map(str, found))
        return [Error(f"git {said} is too old", hint=hint, id="workspaces.E002")]
    return []
