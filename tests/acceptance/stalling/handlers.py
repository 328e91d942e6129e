"""``test.flaky`` fails at its first attempt."""

from __future__ import annotations

from typing import Any

from jobs.context import JobContext
from jobs.registry import job_handler


@job_handler("test.flaky")
def flaky(context: JobContext, payload: dict[str, Any]) -> None:
    if context.attempt == 1:
        raise ValueError("the first attempt fails")
