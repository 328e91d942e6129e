"""Which branch of the remote's new ones begin at: kept while it is there, and found anew when it was renamed or removed."""

from __future__ import annotations

import contextlib
import datetime as dt
import os

from workspaces.exceptions import InvalidName
from workspaces.plumbing.control import REMOTE, listed
from workspaces.repository import Repository, Stop

_USUAL = ("main", "master", "trunk", "develop")


def follow(
    repository: Repository,
    url: str,
    *,
    before: str,
    known: str | None = None,
    timeout: dt.timedelta | None = None,
    stop: Stop | None = None,
) -> str:
    """The default branch after a fetch, which was ``before``; "" where the remote has none to begin at.

    ``known`` is what the remote said a moment ago to another clone of it; None: it was not asked. Where it names none
    that is there, the only branch is taken, or one of a usual name.
    """
    if before and repository.has_remote_branch(before):
        return before
    branches = branches_of(repository)
    if not branches:
        return ""
    if known is None:
        known = repository.find_default_branch(url, timeout=timeout, stop=stop)
        if known:
            return known
    if known not in branches:
        known = next(iter(branches)) if len(branches) == 1 else _usual(branches)
    if not known:
        return ""
    with contextlib.suppress(InvalidName):
        repository.check_branch(known)
        repository.run(["symbolic-ref", "--", f"{REMOTE}HEAD", f"{REMOTE}{known}"])
        return known
    return ""


def branches_of(repository: Repository) -> set[str]:
    """The remote's branches at the last fetch."""
    return {os.fsdecode(name).removeprefix(REMOTE) for name in listed(repository.path)}


def _usual(branches: set[str]) -> str:
    return next((name for name in _USUAL if name in branches), "")
