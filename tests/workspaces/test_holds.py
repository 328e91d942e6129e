"""What embedders call, as the documentation shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from workspaces import clones, holds
from workspaces.exceptions import StaleHold
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


def test_a_worktree_is_acquired_kept_and_released_by_its_number(workspace: Workspace):
    worktree = holds.acquire(
        clones.find("demo"), holder="conversation-17", branch="fix-login"
    )
    number = worktree.fencing_no
    assert Path(worktree.path, "README").exists()
    assert holds.heartbeat(worktree.pk, fencing_no=number).held_by == "conversation-17"
    assert holds.release(worktree.pk, fencing_no=number).held_by is None
    again = holds.acquire_again(worktree.pk, holder="conversation-17")
    assert again.fencing_no > number
    with pytest.raises(StaleHold):
        holds.release(worktree.pk, fencing_no=number)


def test_all_that_is_promised_is_there():
    assert all(
        callable(getattr(holds, name)) for name in holds.__all__ if name.islower()
    )
