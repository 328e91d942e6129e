from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from tests.workspaces.factories import ArchiveFactory, WorktreeFactory

pytestmark = pytest.mark.django_db


def test_what_belongs_to_one_workspace_can_be_listed_with_its_host(
    admin_client: Client,
):
    for factory, model in (
        (WorktreeFactory, "worktree"),
        (ArchiveFactory, "worktreearchive"),
    ):
        mine = factory(branch="acw/mine", workspace__host="one-host")
        factory(branch="acw/other")
        response = admin_client.get(
            reverse(f"admin:workspaces_{model}_changelist"),
            {"workspace__id__exact": mine.workspace_id},
        )
        page = response.content.decode()
        assert response.status_code == 200
        assert "acw/mine" in page
        assert "acw/other" not in page
        assert "one-host" in page
        assert mine.workspace.name in page
