from __future__ import annotations

import pytest

from notify.topics import topics, webhook_topics


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
