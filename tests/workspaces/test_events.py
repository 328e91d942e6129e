from __future__ import annotations

import re

from workspaces.events import LogEvent


def test_names_are_words_joined_by_dots():
    for event in LogEvent:
        assert re.fullmatch(r"(workspace|worktree|attachment)\.[a-z_]+", event)
