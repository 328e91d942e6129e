from __future__ import annotations

import datetime as dt

import pytest
from pytest_django import Settings

from workspaces.models import Worktree
from workspaces.pruning.prune_time import idle_for, pruned_after

USED = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)


@pytest.fixture(autouse=True)
def thirty_days(settings: Settings) -> None:
    settings.JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD = 30 * DAY
    settings.JOBS_WORKTREE_PRUNE_WARNING_LEAD = 3 * DAY
    settings.JOBS_WORKTREE_PRUNE_REQUIRE_WARNING = False


def worktree(**values: object) -> Worktree:
    # Without a row there are no defaults of the database's.
    return Worktree(
        **{"last_used_at": USED, "pinned": False, "state": "ready", **values}
    )


def test_it_is_pruned_when_it_has_been_idle_for_so_long_and_is_not_kept_longer():
    assert pruned_after(worktree()) == USED + 30 * DAY
    assert pruned_after(worktree(kept_until=USED + 9 * DAY)) == USED + 30 * DAY
    assert pruned_after(worktree(kept_until=USED + 50 * DAY)) == USED + 50 * DAY


def test_where_a_warning_is_needed_it_comes_first(settings: Settings):
    warned = worktree(prune_warning_at=USED + 40 * DAY)
    assert pruned_after(warned) == USED + 30 * DAY
    settings.JOBS_WORKTREE_PRUNE_REQUIRE_WARNING = True
    assert pruned_after(warned) == USED + 43 * DAY
    for days, expected in ((1, 30), (27, 30), (29, 32), (50, 53)):
        now = USED + days * DAY
        assert pruned_after(worktree(), now=now) == USED + expected * DAY, days


@pytest.mark.parametrize(
    "values",
    [
        {"held_by": "agent"},
        {"pinned": True},
        {"state": "quarantined"},
        {"state": "creating"},
        {"state": "restoring"},
    ],
    ids=lambda values: "-".join(map(str, *values.items())),
)
def test_what_is_in_use_or_out_of_use_or_pinned_is_never_pruned(
    values: dict[str, object],
):
    assert pruned_after(worktree(**values)) is None


def test_only_what_nobody_holds_is_idle():
    now = USED + 2 * DAY
    assert idle_for(worktree(), now=now) == 2 * DAY
    assert idle_for(worktree(held_by="agent"), now=now) is None
