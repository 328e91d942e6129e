"""Telling the people of a workspace what a pass of reconciliation found there: once, when it is found."""

from __future__ import annotations

from dataclasses import dataclass

from notify.dispatch import Event, dispatch
from notify.links import admin_page
from notify.recipients import owner_or_admins
from workspaces import topics
from workspaces.upkeep.places import Place
from workspaces.upkeep.survey import ALARMING, IN_WORDS, Action, Found

_NAMED = 20
_TOLD = ALARMING | {Action.REGISTER}


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """What was found of one worktree of ``workspace``, and what came of it; ``error``: "" or why nothing did."""

    workspace: str
    found: Found
    said: str = ""
    error: str = ""


def tell(place: Place, lines: list[Line]) -> bool:
    """Tell what is no matter of course; whether there was anything to tell. What could not be done is the doctor's to tell."""
    told = [line for line in lines if line.found.action in _TOLD and not line.error]
    if not told and not place.is_gone:
        return False
    dispatch(_event(place, told))
    return True


def describe(line: Line) -> str:
    """What was found and what came of it, on one line."""
    found = line.found
    row = found.worktree
    what = (
        f"directory {found.name}"
        if row is None
        else f"worktree {row.pk} ({row.branch})"
    )
    done = f"not done: {line.error}" if line.error else IN_WORDS[found.action]
    said = [f"{what}: {found.why}; {done}"]
    if row is not None and row.held_by and found.action is Action.MISS:
        said.append(f"{row.held_by} holds it")
    return "; ".join([*said, *([line.said] if line.said else [])])


def _event(place: Place, told: list[Line]) -> Event:
    workspace = place.workspace
    lines = [f"* {describe(line)}" for line in told[:_NAMED]]
    if len(told) > _NAMED:
        lines.append(f"* and {len(told) - _NAMED} more")
    if place.is_gone:
        lines.insert(0, f"* its clone is gone: there is no {workspace.path}")
    count = len(told) + place.is_gone
    return Event(
        topic=topics.RECONCILED.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"{workspace.name}: {count} {'things were' if count > 1 else 'thing was'} not as they should be on the disk",
        body=(
            "\n".join(lines)
            + f"\n\nNothing was deleted. The workspace is on {workspace.host}; `workspace reconcile {workspace.name} --dry-run` says"
            " there what is not as it should be now."
        ),
        data={
            "url": admin_page(workspace),
            "workspace_id": workspace.pk,
            "workspace": workspace.name,
            "clone_missing": place.is_gone,
            "found": [
                {
                    "cell": line.found.cell,
                    "action": line.found.action,
                    "worktree_id": None
                    if line.found.worktree is None
                    else line.found.worktree.pk,
                    "directory": line.found.name,
                    "said": line.said,
                }
                for line in told[:_NAMED]
            ],
        },
    )
