from __future__ import annotations

import datetime as dt

import pytest
from django.core.exceptions import ImproperlyConfigured

from acw import consistency

HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
GOOD = {
    "JOBS_WORKTREE_PRUNE_WARNING_LEAD": HOUR,
    "JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD": DAY,
    "JOBS_BACKOFF_BASE": HOUR,
    "JOBS_BACKOFF_MAX": HOUR,
    "NOTIFY_WEBHOOK_BREAKER_WAIT": HOUR,
    "NOTIFY_WEBHOOK_BREAKER_MAX_WAIT": HOUR,
    "ACW_WORKSPACE_SOFT_LIMIT": 5,
    "ACW_WORKSPACE_HARD_LIMIT": 5,
}


def test_what_holds_together_passes():
    consistency.check(GOOD)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "JOBS_WORKTREE_PRUNE_WARNING_LEAD",
            DAY,
            "WARNING_LEAD .* must be shorter than JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD",
        ),
        ("JOBS_BACKOFF_BASE", DAY, "must be no longer than JOBS_BACKOFF_MAX"),
        (
            "NOTIFY_WEBHOOK_BREAKER_WAIT",
            DAY,
            "no longer than NOTIFY_WEBHOOK_BREAKER_MAX_WAIT",
        ),
        ("ACW_WORKSPACE_SOFT_LIMIT", 6, "no larger than ACW_WORKSPACE_HARD_LIMIT"),
    ],
)
def test_what_cannot_hold_together_is_refused_by_name(
    name: str, value: dt.timedelta | int, message: str
):
    with pytest.raises(ImproperlyConfigured, match=message):
        consistency.check({**GOOD, name: value})


def test_without_a_hard_limit_a_soft_one_may_be_any():
    consistency.check(
        {**GOOD, "ACW_WORKSPACE_SOFT_LIMIT": 6, "ACW_WORKSPACE_HARD_LIMIT": 0}
    )
