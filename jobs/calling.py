"""Calling what apps register: in a context of its own, in this process only, and refusing work that is only promised."""

from __future__ import annotations

import contextvars
import os
import traceback
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import NoReturn, ParamSpec, TypeVar

from jobs.context import JobContext
from jobs.registry import JobType
from jobs.wording import named

P = ParamSpec("P")
R = TypeVar("R")

_NOT_BEGUN = (Coroutine, Generator, AsyncGenerator)


def apart(function: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
    """Call it in an empty context, as a new thread has it: what it activates there (a language, a time zone, a decimal
    precision, any context variable) is gone when it returns, or a worker's next job would meet it."""
    contextvars.Context().run(function, *args, **kwargs)


def call(job_type: JobType, context: JobContext, payload: object) -> None:
    """Call the handler.

    Raises TypeError where it returned a coroutine or a generator, as one behind a decorator may: nothing of it has run, and
    its job would count as completed.
    """
    returned: object = without_children(job_type.handler, context, payload)
    if returned is not None and isinstance(returned, _NOT_BEGUN):
        if not isinstance(returned, AsyncGenerator):
            returned.close()
        raise TypeError(
            f"the handler of {job_type.name!r} returned a {named(type(returned))}, of which nothing has run; "
            "a handler does its work before it returns (asgiref.sync.async_to_sync runs a coroutine function)"
        )


def without_children(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call it. A process that it forks, and that comes back from it, ends here: it is no worker, and its connections are the
    worker's own."""
    process = os.getpid()
    try:
        returned = function(*args, **kwargs)
    except BaseException as error:
        if os.getpid() != process:
            _end_child(error)
        raise
    if os.getpid() != process:
        _end_child(None)
    return returned


def _end_child(error: BaseException | None) -> NoReturn:
    """With the status that a program has which ends so; nothing of its parent's is tidied up."""
    status = 0
    try:
        if isinstance(error, SystemExit):
            code = error.code
            status = code if isinstance(code, int) else int(code is not None)
        elif error is not None:
            status = 1
            traceback.print_exception(error)
    finally:
        os._exit(status & 0xFF)
