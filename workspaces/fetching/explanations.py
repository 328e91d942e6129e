"""What people are told of a workspace's fetches: how fresh it is, when the next is, and why then."""

from __future__ import annotations

from workspaces.failures import Failure
from workspaces.fetching import fetch_schedule
from workspaces.models import Workspace
from workspaces.upkeep.places import was_gone

_WHY = {
    Failure.AUTH: "the remote refuses this host's keys",
    Failure.NOT_FOUND: "there is no such repository",
    Failure.HOST_KEY: "the remote's host is not the one that is known",
    Failure.REFUSED: "it is refused",
    Failure.NETWORK: "the remote could not be reached",
    Failure.TIMEOUT: "the remote took too long",
    Failure.LOCK: "another git had a lock",
    Failure.CORRUPT: "objects of the clone are damaged",
    Failure.DISK_FULL: "the disk is full",
    Failure.CONFIG_TAMPERED: "the clone's configuration was changed",
}


def next_fetch_why(workspace: Workspace, *, is_held: bool = False) -> str:
    """Why the next fetch is at ``next_fetch_at`` and not at another time, or why there is none.

    ``is_held``: a worktree of it is; until none is, it is not fetched, however long it is due.
    """
    why = _why(workspace)
    if is_held and workspace.state == Workspace.State.READY:
        return f"{why}, but not while a worktree is held"
    return why


def _why(workspace: Workspace) -> str:
    if was_gone(workspace):
        return (
            "its clone is gone from the disk: looked for there at every reconciliation"
        )
    match workspace.state:
        case Workspace.State.CLONING:
            so_far = workspace.clone_progress or "waiting for a worker"
            return f"being cloned: {so_far}"
        case Workspace.State.FAILED:
            return "not cloned: tried again when somebody has it fetched or gives it another URL"
    if not workspace.fetch_problem:
        return "at the usual interval" if workspace.last_fetched_at else "the first"
    failure = Failure(workspace.fetch_problem)
    reason = _WHY[failure]
    if failure in fetch_schedule.REFUSALS:
        return f"{reason}: tried again when its URL, this host's keys or settings change, or once a day"
    if failure in {Failure.LOCK, Failure.CONFIG_TAMPERED}:
        return f"{reason}: looked at again soon"
    return f"{reason}, {_times(workspace.fetch_failures)}: tried less and less often"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times in a row"
