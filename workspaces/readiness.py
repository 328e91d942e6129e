"""Whether a workspace's clone is there to be worked on."""

from __future__ import annotations

from workspaces.exceptions import NotCloned
from workspaces.models import Workspace
from workspaces.upkeep.places import GONE, was_gone


def check_ready(workspace: Workspace) -> None:
    """Raise :class:`~workspaces.exceptions.NotCloned` where its clone is being made, or could not be made."""
    if workspace.state == Workspace.State.CLONING:
        so_far = f" ({workspace.clone_progress})" if workspace.clone_progress else ""
        raise NotCloned(
            f"workspace {workspace.name} is being cloned{so_far}; try again when `workspace show` says ready"
        )
    if was_gone(workspace):
        raise NotCloned(
            f"workspace {workspace.name}: {GONE}; is the disk mounted? It is used again when it is back"
        )
    if workspace.state == Workspace.State.FAILED:
        raise NotCloned(
            f"workspace {workspace.name} could not be cloned: {workspace.last_fetch_error}; "
            "`workspace fetch` tries again, `workspace set-url` gives it another URL"
        )
