from __future__ import annotations

import datetime as dt
import json
import logging
import logging.config
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from acw import logs

MOMENT = dt.datetime(2026, 11, 29, 17, 0, 0, 123_000, tzinfo=dt.UTC).timestamp()


def record(
    message: str = "job.fail_retry", *args: Any, **fields: Any
) -> logging.LogRecord:
    made = logging.LogRecord("jobs", logging.INFO, __file__, 1, message, args, None)
    made.created = MOMENT
    made.__dict__.update(fields)
    return made


def as_text(made: logging.LogRecord) -> str:
    return logs.TextFormatter().format(made)


def as_json(made: logging.LogRecord) -> dict[str, Any]:
    line = logs.JsonFormatter().format(made)
    assert "\n" not in line
    loaded: dict[str, Any] = json.loads(line)
    return loaded


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_text_is_time_level_event_and_fields():
    assert as_text(record(job_id=7, type="webhook.deliver", due=None)) == (
        "2026-11-29T17:00:00.123Z INFO job.fail_retry"
        " job_id=7 type=webhook.deliver due=null"
    )


def test_json_is_one_object_with_the_fields_as_they_are():
    assert as_json(record(job_id=7, tags=["a", "b"], ok=True)) == {
        "time": "2026-11-29T17:00:00.123Z",
        "level": "info",
        "event": "job.fail_retry",
        "logger": "jobs",
        "job_id": 7,
        "tags": ["a", "b"],
        "ok": True,
    }


def test_a_field_with_a_reserved_name_does_not_replace_it():
    line = as_json(record(event="other", level=3))
    assert (line["event"], line["field.event"]) == ("job.fail_retry", "other")
    assert (line["level"], line["field.level"]) == ("info", 3)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("two words", '"two words"'),
        ("", '""'),
        ('say "x"', r'"say \"x\""'),
        ("a=b", '"a=b"'),
        ("line\nbreak", r'"line\nbreak"'),
        ("line\u2028break", r'"line\u2028break"'),
        ("\x1b[31m", r'"\u001b[31m"'),
        ("grün", "grün"),
        ({"a": [1]}, '{"a": [1]}'),
        (dt.timedelta(minutes=2), "120.0"),
        (dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "2026-01-02T00:00:00+00:00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path("/srv/data"), "/srv/data"),
        (float("nan"), "nan"),
        pytest.param(10**5000, '"<unprintable int>"', id="a number too long to print"),
        (Broken(), '"<unprintable Broken>"'),
    ],
)
def test_a_value_is_shown_in_text_without_ending_its_line(value: Any, shown: str):
    assert as_text(record(value=value)).partition("value=")[2] == shown


def test_odd_values_are_valid_json():
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    line = as_json(
        record(a=float("inf"), b=Broken(), c="\ud800", d=cycle, e={1, 2}, f=b"x")
    )
    assert line["a"] == "inf"
    assert line["b"] == "<unprintable Broken>"
    assert line["e"] == [1, 2]


def test_a_message_whose_arguments_do_not_fit_is_not_lost():
    assert "moved %s to %s ('here',)" in as_text(record("moved %s to %s", "here"))


def test_a_message_stays_on_its_line():
    assert "\n" not in as_text(record("GET /x\n2026 INFO forged"))


def failing_record() -> logging.LogRecord:
    made = record(
        "fetch of https://u:hunter2@host/r failed", url="https://h/?k=hunter2"
    )
    try:
        raise ValueError("cannot reach https://token-hunter2@host/")
    except ValueError:
        made.exc_info = sys.exc_info()
    return made


def test_secrets_in_urls_are_hidden_in_message_fields_and_traceback():
    text = as_text(failing_record())
    assert "hunter2" not in text
    assert "ValueError: cannot reach https://***@host/" in text
    line = as_json(failing_record())
    assert "hunter2" not in json.dumps(line)
    assert "ValueError" in line["exception"]


def test_an_exception_without_text_does_not_break_the_line():
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    made = record()
    try:
        raise MuteError
    except MuteError:
        made.exc_info = sys.exc_info()
    assert "MuteError" in as_text(made)


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_the_configuration_writes_to_stderr(
    log_format: str, capsys: pytest.CaptureFixture[str]
):
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        logging.config.dictConfig(logs.config(log_format=log_format, level="info"))
        logging.getLogger("django.server").info("served", extra={"request": object()})
        logging.getLogger("jobs").debug("not logged")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "served" in printed.err
    assert "request" not in printed.err
