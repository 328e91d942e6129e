"""The names of this app's log events.

They are public: operators search and alert on them, so they stay as written. Each is the
message of one log record, with its facts in ``extra``; ``docs/operations.md`` lists them.
"""

from __future__ import annotations

from enum import StrEnum


class LogEvent(StrEnum):
    """One member for each thing that is told to people or receivers."""

    DISPATCHED = "notify.dispatched"

    DELIVERED = "webhook.delivered"
    ATTEMPT_FAILED = "webhook.attempt_failed"
    SKIPPED = "webhook.skipped"
    DEAD_LETTER = "webhook.dead_letter"
    RECOVERED = "webhook.recovery_finished"
    ENDPOINT_CREATED = "webhook.endpoint_created"
    SECRET_ROTATION = "webhook.secret_rotation"  # noqa: S105 (a name)
    ENDPOINT_FAILING = "webhook.endpoint_failing"
    ENDPOINT_RECOVERED = "webhook.endpoint_recovered"
    ENDPOINT_DISABLED = "webhook.endpoint_disabled"
    ENDPOINT_SWITCHED = "webhook.endpoint_switched"
    SUPERSEDED = "webhook.superseded"
