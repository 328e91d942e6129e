"""The names of the task market's log events.

They are public: operators search and alert on them, so they stay as written. Each is the
message of one log record, with its facts in ``extra``; ``docs/operations.md`` lists them.
"""

from __future__ import annotations

from enum import StrEnum


class LogEvent(StrEnum):
    """One member for each thing that can happen to a task."""

    APPLIED = "task.applied"
    REFUSED = "task.refused"
    JUDGED = "task.judged"
    OPINION = "task.opinion_given"
    MENDED = "task.mended"
    MENDING_FAILED = "task.mending_failed"
    REPORTED = "task.reported"
