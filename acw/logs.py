"""One log record = an event's name and its fields, as a line of text or of JSON.

log.info("job.fail_retry", extra={"job_id": job.id, "attempt": 2})
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import math
from typing import Any

from jobs.redaction import redact
from jobs.tracebacks import formatted

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {
    "message",
    "asctime",
    "taskName",  # Python 3.12
    # What django.server and django.request add: objects, not fields.
    "request",
    "server_time",
}
_RESERVED = frozenset({"time", "level", "event", "logger", "exception"})
_DEPTH = 6


class TextFormatter(logging.Formatter):
    """`2026-11-29T17:00:00.123Z INFO job.fail_retry job_id=… attempt=2`"""

    def format(self, record: logging.LogRecord) -> str:
        parts = [_timestamp(record), record.levelname, _one_line(_event(record))]
        parts += [f"{key}={_quoted(value)}" for key, value in _fields(record).items()]
        line = " ".join(parts)
        trace = _trace(record)
        return f"{line}\n{trace}" if trace else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line; a field that has a reserved name gets `field.` before it."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "event": _event(record),
            "logger": record.name,
        }
        for key, value in _fields(record).items():
            line[f"field.{key}" if key in _RESERVED else key] = value
        trace = _trace(record)
        if trace:
            line["exception"] = trace
        return json.dumps(line)


def config(*, log_format: str, level: str) -> dict[str, Any]:
    """Return Django's LOGGING: everything to stderr, in one format."""
    formatter = {"text": TextFormatter, "json": JsonFormatter}[log_format]
    # Django's own handlers are taken off: what they would print comes here as well.
    passed_on = {"handlers": [], "propagate": True, "level": level.upper()}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"acw": {"()": formatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "acw"}},
        "root": {"handlers": ["stderr"], "level": level.upper()},
        "loggers": {"django": passed_on, "django.server": passed_on},
    }


def _timestamp(record: logging.LogRecord) -> str:
    time = dt.datetime.fromtimestamp(record.created, dt.UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _event(record: logging.LogRecord) -> str:
    try:
        return redact(record.getMessage())
    except Exception:  # a wrong number of arguments must not lose the record
        return redact(f"{record.msg} {_text(record.args)}")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {
        key: _plain(value)
        for key, value in record.__dict__.items()
        if key not in _STANDARD
    }


def _trace(record: logging.LogRecord) -> str:
    parts = []
    if record.exc_info and record.exc_info[1] is not None:
        parts.append(formatted(record.exc_info[1]).rstrip("\n"))
    elif record.exc_text:
        parts.append(record.exc_text)
    if record.stack_info:
        parts.append(record.stack_info)
    return redact("\n".join(parts))


def _plain(value: Any, depth: int = _DEPTH) -> Any:
    """Return the value as JSON knows it, without secrets in URLs."""
    if value is None or isinstance(value, bool):
        return value
    # Exact types: a subclass may print as anything.
    if type(value) is int:
        # Python refuses to print an int of thousands of digits.
        return value if value.bit_length() <= 64 else _text(value)
    if type(value) is float:
        return value if math.isfinite(value) else str(value)
    if type(value) is str:
        return redact(value)
    if depth and isinstance(value, dict):
        return {_text(key): _plain(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, depth - 1) for item in value]
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    return _text(value)


def _text(value: Any) -> str:
    try:
        text = value.isoformat() if isinstance(value, dt.datetime) else str(value)
    except Exception:  # any __str__ may be broken, and the rest of the record counts
        return f"<unprintable {type(value).__name__}>"
    return redact(text)


def _quoted(value: Any) -> str:
    if isinstance(value, str):
        needs_quotes = not value or any(
            char.isspace() or not char.isprintable() or char in '"=' for char in value
        )
        if not needs_quotes:
            return value
    return _one_line(json.dumps(value, ensure_ascii=False))


def _one_line(text: str) -> str:
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
