"""The names of this package's log events; see :mod:`jobs.events` for what they are to operators."""

from __future__ import annotations

from enum import StrEnum


class LogEvent(StrEnum):
    """One member for each thing that the web server and the embedded database log."""

    WAY_OPENED = "embedded.way_opened"
    NOT_READY = "web.not_ready"
