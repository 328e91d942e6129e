from __future__ import annotations

import pytest

from tests.workspaces.factories import WorkspaceFactory
from workspaces.models import WorktreeArchive


@pytest.mark.django_db
def test_an_archive_has_a_reference_of_its_own():
    archives = [
        WorktreeArchive.objects.create(
            workspace=WorkspaceFactory(),
            worktree_id=1,
            path="/data/x",
            branch="acw/x",
            reason=WorktreeArchive.Reason.PRUNED,
            actor="system",
        )
        for _ in range(2)
    ]
    refs = {archive.ref for archive in archives}
    assert refs == {f"refs/acw/archive/{archive.pk}" for archive in archives}
    assert len(refs) == 2
