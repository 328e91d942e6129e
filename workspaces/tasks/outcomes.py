"""What became of an action: a plain value, for callers, commands and logs."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from workspaces.tasks.states import Action, Reason, Status


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Whether the action applied, and the status that the task has now.

    Where it did not, nothing was changed, ``reason`` says why in words and ``code`` for programs; ``due`` is the time from
    which it may apply, where it came early.
    """

    ok: bool
    task_id: int
    action: Action
    status: Status
    reason: str = ""
    code: Reason | None = None
    due: dt.datetime | None = None
    created_id: int | None = None
    """Of the submission, checkpoint or transfer that it made."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON: ``{"ok": true, …}``, or ``{"ok": false, "reason": …, …}``."""
        said: dict[str, Any] = {"ok": self.ok}
        if not self.ok:
            said |= {"reason": self.reason, "code": self.code}
        said |= {
            "task_id": self.task_id,
            "action": self.action.value,
            "status": self.status.value,
        }
        if self.created_id is not None:
            said["id"] = self.created_id
        return said


class Refused(Exception):
    """Ends the transaction of an action that does not apply."""

    def __init__(
        self, code: Reason, reason: str, *, due: dt.datetime | None = None
    ) -> None:
        self.code = code
        self.reason = reason
        self.due = due
        super().__init__(reason)
