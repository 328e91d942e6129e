from __future__ import annotations

import pytest
from django.utils import timezone

from tests.workspaces.factories import WorkspaceFactory
from workspaces.failures import Failure
from workspaces.fetching.explanations import next_fetch_why
from workspaces.models import Workspace
from workspaces.upkeep.places import GONE


def shown(**values: object) -> Workspace:
    row: Workspace = WorkspaceFactory.build(
        **{
            "state": "ready",
            "clone_progress": "",
            "fetch_problem": "",
            "fetch_failures": 0,
            **values,
        }
    )
    return row


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, "the first"),
        ({"last_fetched_at": timezone.now()}, "at the usual interval"),
        ({"state": "cloning"}, "being cloned: waiting for a worker"),
        (
            {"state": "cloning", "clone_progress": "receiving objects 45 %"},
            "being cloned: receiving objects 45 %",
        ),
        (
            {"state": "failed"},
            "not cloned: tried again when somebody has it fetched or gives it another URL",
        ),
        (
            {"state": "failed", "clone_progress": GONE},
            "its clone is gone from the disk: looked for there at every reconciliation",
        ),
        (
            {"fetch_problem": "host_key", "fetch_failures": 1},
            "the remote's host is not the one that is known: tried again when "
            "its URL, this host's keys or settings change, or once a day",
        ),
        (
            {"fetch_problem": "timeout", "fetch_failures": 1},
            "the remote took too long, once: tried less and less often",
        ),
        (
            {"fetch_problem": "network", "fetch_failures": 4},
            "the remote could not be reached, 4 times in a row: tried less and less often",
        ),
        (
            {"fetch_problem": "config_tampered", "fetch_failures": 4},
            "the clone's configuration was changed: looked at again soon",
        ),
    ],
    ids=[
        "new",
        "well",
        "waiting for a worker",
        "being cloned",
        "not cloned",
        "gone",
        "refused",
        "failed once",
        "failed often",
        "tampered",
    ],
)
def test_why_the_next_fetch_is_then(values: dict[str, object], why: str):
    assert next_fetch_why(shown(**values)) == why


def test_what_is_held_is_not_fetched_however_long_it_is_due():
    well = shown(last_fetched_at=timezone.now())
    assert next_fetch_why(well, is_held=True) == (
        "at the usual interval, but not while a worktree is held"
    )
    cloning = shown(state="cloning")
    assert next_fetch_why(cloning, is_held=True) == next_fetch_why(cloning)


def test_every_kind_of_failure_has_its_words():
    said = {
        next_fetch_why(shown(fetch_problem=failure, fetch_failures=1))
        for failure in Failure
    }
    assert len(said) == len(Failure)
