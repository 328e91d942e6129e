from __future__ import annotations

import pytest

from notify.topics import topics, webhook_topics
from workspaces.models import Worktree
from workspaces.topics import about


@pytest.mark.parametrize(
    "name",
    [
        "workspace.sync_failed",
        "workspace.sync_recovered",
        "worktree.prune_pending",
        "worktree.prune_blocked",
    ],
)
def test_the_topic_is_known_and_may_be_a_webhook(name: str):
    assert name in topics()
    assert name in {topic.name for topic in webhook_topics()}


@pytest.mark.django_db
def test_every_event_about_a_worktree_names_it_and_where_it_is(worktree: Worktree):
    assert about(worktree) == {
        "url": f"/admin/workspaces/worktree/{worktree.pk}/change/",
        "workspace_id": worktree.workspace.pk,
        "workspace": worktree.workspace.name,
        "worktree_id": worktree.pk,
        "branch": worktree.branch,
        "path": worktree.path,
    }
