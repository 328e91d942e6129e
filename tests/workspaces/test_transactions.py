from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import transaction

from workspaces import holds, prune, transactions
from workspaces.archiving import restoring
from workspaces.models import Workspace, Worktree, WorktreeArchive

pytestmark = pytest.mark.django_db


def test_what_would_stay_on_the_disk_is_not_begun_in_a_transaction(
    workspace: Workspace, worktree: Worktree, path: Path
):
    draft = path / "draft"
    draft.write_text("mine\n")
    key = worktree.pk
    calls: dict[str, Callable[[], object]] = {
        "acquire": lambda: holds.acquire(workspace, holder="agent"),
        "acquire_again": lambda: holds.acquire_again(key, holder="agent"),
        "prune_worktree": lambda: prune.prune_worktree(key),
        "archive_worktree": lambda: prune.archive_worktree(key, actor="ada"),
        "restore": lambda: restoring.restore(key, actor="ada"),
    }
    for name, call in calls.items():
        said = rf"^{name}\(\) was called in a transaction"
        with transaction.atomic(), pytest.raises(RuntimeError, match=said):
            call()
        assert draft.read_text() == "mine\n", name
    assert not WorktreeArchive.objects.exists()
    assert Worktree.objects.get().held_by is None


def test_outside_of_one_nothing_is_refused():
    transactions.refuse("it")
