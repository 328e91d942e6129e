"""Which host works on what: a clone is touched only by the host on whose disk it lies."""

from __future__ import annotations

from django.conf import settings

from workspaces.exceptions import WrongHost
from workspaces.models import Workspace


def this_host() -> str:
    host: str = settings.ACW_HOST
    return host


def queue_of(host: str) -> str:
    """The queue that only this host's workers take."""
    return f"host:{host}"


def check_host(host: str) -> None:
    """Raise :class:`~workspaces.exceptions.WrongHost` where this is another host."""
    if host != this_host():
        raise WrongHost(f"this is host {this_host()!r} (ACW_HOST), not {host!r}")


def check(workspace: Workspace) -> None:
    """Raise :class:`~workspaces.exceptions.WrongHost` where the clone lies on another host."""
    if workspace.host != this_host():
        raise WrongHost(
            f"workspace {workspace.name} lies on host {workspace.host!r} and this is "
            f"{this_host()!r} (ACW_HOST); run it there"
        )
