"""When a workspace is fetched next, by how the last fetch went, and when its people are told. Pure."""

from __future__ import annotations

import datetime as dt
import hashlib
import random

from django.conf import settings

from workspaces.failures import Failure

LOCK_RETRY = dt.timedelta(seconds=30)
PARKED = dt.timedelta(days=1)
"""How often a remote is asked that will refuse until somebody changes something."""

REFUSALS = frozenset(
    {Failure.AUTH, Failure.NOT_FOUND, Failure.HOST_KEY, Failure.REFUSED}
)
"""Failures that do not go away by themselves."""

OF_THE_REMOTE = frozenset(
    {
        Failure.AUTH,
        Failure.NOT_FOUND,
        Failure.HOST_KEY,
        Failure.NETWORK,
        Failure.TIMEOUT,
    }
)
"""Failures that every clone of the remote has."""

_UNREACHABLE = frozenset({Failure.NETWORK, Failure.TIMEOUT})
_TOLD_AFTER = {Failure.NETWORK: 2, Failure.TIMEOUT: 2, Failure.LOCK: 3}
_JITTER = 0.1


def after_clone(workspace_id: int) -> dt.timedelta:
    """Until the first fetch: spread over the interval by the workspace's id."""
    digest = hashlib.sha256(str(workspace_id).encode()).digest()
    share = int.from_bytes(digest[:4], "big") / 2**32
    interval: dt.timedelta = settings.JOBS_WORKSPACE_FETCH_INTERVAL
    return interval * share


def after_success() -> dt.timedelta:
    """Until the next: an interval, a little longer or shorter, so that those that began together drift apart."""
    return _jittered(settings.JOBS_WORKSPACE_FETCH_INTERVAL)


def after_failure(failure: Failure, failures: int) -> dt.timedelta:
    """Until the next try, when it was the ``failures``-th of its kind in a row (from 1)."""
    interval: dt.timedelta = settings.JOBS_WORKSPACE_FETCH_INTERVAL
    if failure in REFUSALS:
        return _jittered(PARKED)
    if is_retried_soon(failure, failures):
        return LOCK_RETRY
    if failure in {Failure.LOCK, Failure.CONFIG_TAMPERED}:
        return _jittered(interval)
    longest = max(settings.ACW_FETCH_BACKOFF_MAX, interval)
    # Beyond that, no interval is below any limit that can be set.
    doubled = interval * 2 ** min(failures - 1, 20)
    return _jittered(min(doubled, longest))


def is_retried_soon(failure: Failure, failures: int) -> bool:
    """Whether it is most likely over in a moment: another git had a lock."""
    return failure is Failure.LOCK and failures < _TOLD_AFTER[failure]


def is_told(failure: Failure, failures: int) -> bool:
    """Whether people are told of it now: at once, or when it was no accident; the seal tells of what it finds itself."""
    if failure is Failure.CONFIG_TAMPERED:
        return False
    return failures == _TOLD_AFTER.get(failure, 1)


def are_alike(one: str, other: str) -> bool:
    """Whether a failure of the one kind after one of the other is the same trouble going on."""
    return one == other or {one, other} <= _UNREACHABLE


def _jittered(duration: dt.timedelta) -> dt.timedelta:
    return duration * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 (no secret)
