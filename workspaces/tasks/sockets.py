"""Callables of the operator's own, named in the settings by dotted paths: the judge of contests, and the arbiter."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from jobs.context import JobContext
from jobs.display import duration

CONTEST_JUDGE = "TASKS_CONTEST_JUDGE"
ARBITER = "TASKS_ARBITER"
SOCKETS = (CONTEST_JUDGE, ARBITER)


class SocketError(Exception):
    """What a setting names is not there, cannot be called, or took too long; the message names the setting."""


def plugged(setting: str) -> Callable[..., Any] | None:
    """What is plugged in, None where nothing is. Raises :class:`SocketError` where that cannot be had."""
    path: str = getattr(settings, setting)
    if not path:
        return None
    try:
        found = import_string(path)
    except Exception as error:  # whatever the module does when it is imported
        raise SocketError(
            f"{setting}={path}: it cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(found):
        raise SocketError(
            f"{setting}={path}: it is {type(found).__name__}, which cannot be called"
        )
    if inspect.iscoroutinefunction(found):
        raise SocketError(
            f"{setting}={path}: it is a coroutine function; asgiref.sync.async_to_sync makes an ordinary one of it"
        )
    return found  # type: ignore[no-any-return]


def check_wanted(setting: str, context: JobContext | None) -> None:
    """See, once it has answered, that the job which asked may still act on the answer.

    Raises :class:`~jobs.exceptions.LeaseLost` and ``Cancelled``, and :class:`SocketError` where it took longer than
    ``TASKS_JUDGE_TIMEOUT``: by then somebody else may have been asked.
    """
    if context is None:
        return
    context.check_lease()
    context.check_cancelled()
    if context.timed_out:
        raise SocketError(
            f"{setting}: the answer came after more than {duration(context.timeout)} (TASKS_JUDGE_TIMEOUT), and is not applied"
        )
