"""System checks: what can be known of this host without a database."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register

from jobs.checks import WORKER
from workspaces import git
from workspaces.exceptions import GitError
from workspaces.storing import storage


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


@register()
def check_attachment_storage(**_: Any) -> list[CheckMessage]:
    """The storage of attachments can be made from its settings."""
    try:
        storage.description()
    except Exception as error:  # a storage's own, which may quote its options
        said = f"the storage of attachments cannot be made ({type(error).__name__})"
        hint = (
            "Set ACW_ATTACHMENT_STORAGE to a class that can be imported, and ACW_ATTACHMENT_STORAGE_OPTIONS to what it "
            "takes, as JSON."
        )
        return [Error(said, hint=hint, id="workspaces.E003")]
    return []
