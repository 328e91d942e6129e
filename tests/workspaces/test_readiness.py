from __future__ import annotations

import pytest

from tests.workspaces.factories import WorkspaceFactory
from workspaces.exceptions import NotCloned
from workspaces.readiness import check_ready
from workspaces.upkeep.places import GONE


def test_one_that_is_ready_passes():
    check_ready(WorkspaceFactory.build(state="ready"))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"state": "cloning"}, "is being cloned; try again"),
        ({"state": "cloning", "clone_progress": "45 %"}, r"being cloned \(45 %\)"),
        ({"state": "failed", "last_fetch_error": "no host"}, "not be cloned: no host;"),
        ({"state": "failed", "clone_progress": GONE}, "gone from the disk; is the"),
    ],
    ids=["cloning", "with progress", "failed", "gone"],
)
def test_any_other_says_how_far_it_is(values: dict[str, str], said: str):
    with pytest.raises(NotCloned, match=said):
        check_ready(WorkspaceFactory.build(**{"clone_progress": "", **values}))
