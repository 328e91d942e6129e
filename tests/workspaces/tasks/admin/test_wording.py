from __future__ import annotations

import pytest

from workspaces.tasks.admin.wording import DONE
from workspaces.tasks.job_types import ARBITRATION_OPINION
from workspaces.tasks.states import Action


@pytest.mark.parametrize("action", [*Action, ARBITRATION_OPINION])
def test_whatever_stands_in_a_history_has_its_words(action: str):
    assert DONE[action]


def test_no_two_actions_read_alike():
    assert len(set(DONE.values())) == len(DONE)
