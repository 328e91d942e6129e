"""The kinds of jobs that are run: how many of each, and how each is to end whatever happens to its workers."""

from __future__ import annotations

from dataclasses import dataclass

QUICK = "torture.quick"
DELETED = "torture.deleted"
SLOW = "torture.slow"
FLAKY = "torture.flaky"
HOPELESS = "torture.hopeless"
SNOOZING = "torture.snoozing"
ATOMIC = "torture.atomic"
EXITING = "torture.exiting"

EXIT_STATUS = 66
"""With which a handler of ``EXITING`` ends its process."""

MANY = 50
"""Attempts of jobs that faults alone shall not make dead."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """``share`` is how many of a thousand jobs are of it; ``ends`` the status in which it may end.

    None is the end of a job whose row is deleted on completion.
    """

    share: int
    ends: str | None


KINDS = {
    QUICK: Kind(share=540, ends="completed"),
    DELETED: Kind(share=130, ends=None),
    SLOW: Kind(share=70, ends="completed"),
    FLAKY: Kind(share=90, ends="completed"),
    HOPELESS: Kind(share=30, ends="dead"),
    SNOOZING: Kind(share=60, ends="completed"),
    ATOMIC: Kind(share=79, ends="completed"),
    EXITING: Kind(share=1, ends="dead"),
}
