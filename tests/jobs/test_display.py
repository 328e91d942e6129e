from __future__ import annotations

import datetime as dt
import json

import pytest

from jobs import display


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("\n\n", ""),
        ("ValueError: broken\n  more", "ValueError: broken"),
        ("\n  second\nthird", "second"),
        ("x" * 500, "x" * (display.LINE_LIMIT - 1) + "…"),
    ],
)
def test_the_first_line_is_short(text: str, line: str):
    assert display.first_line(text) == line


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\tb\r\nc", "a\tb\nc"),
        ("\x1b[31m\x07\x7f\x9b", "\ufffd[31m\ufffd\ufffd\ufffd"),
        ("pay\u202egnp.exe\u2066", "pay\ufffdgnp.exe\ufffd"),
        ("مرحبا \u200f!", "مرحبا \u200f!"),
    ],
    ids=["lines", "controls", "directions", "arabic"],
)
def test_what_cannot_be_seen_is_replaced(text: str, seen: str):
    assert display.seen(text) == seen


def test_a_payload_is_indented():
    assert display.payload_text('{"a": [1]}') == '{\n  "a": [\n    1\n  ]\n}'
    assert display.payload_text('"a\u202eb"') == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize(
    "key", ["secret", "api_key", "apiKey", "Authorization", "db_password", "auth_token"]
)
def test_what_looks_like_a_secret_is_masked(key: str):
    assert display.payload(json.dumps({"a": [{key: "s3cret"}]})) == {
        "a": [{key: "***"}]
    }


def test_what_is_in_an_object_with_a_secret_name_shows():
    stored = json.dumps({"tokens": {"count": 3, "password": 1}})
    assert display.payload(stored) == {"tokens": {"count": 3, "password": "***"}}


def test_credentials_in_urls_are_redacted():
    stored = json.dumps({"url": "https://user:pass@host/x"})
    shown = display.payload(stored)
    assert shown["url"].startswith("https://")
    assert "pass" not in shown["url"]


@pytest.mark.parametrize(
    "stored", ['{"a": ' + "[" * 9_000 + "]" * 9_000 + "}", '{"n": ' + "9" * 5_000 + "}"]
)
def test_what_python_cannot_read_stays_text(stored: str):
    assert display.payload(stored) == stored
    assert display.payload_text(stored).startswith(stored[:100])


def test_a_long_payload_is_capped():
    stored = json.dumps({"a": "x" * 200_000})
    text = display.payload_text(stored)
    assert len(text) < display.PAYLOAD_LIMIT + 200
    assert "characters left out" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (dt.timedelta(0), "0s"),
        (dt.timedelta(milliseconds=900), "0s"),
        (dt.timedelta(seconds=45), "45s"),
        (dt.timedelta(minutes=3, seconds=20), "3m 20s"),
        (dt.timedelta(minutes=5), "5m"),
        (dt.timedelta(hours=2, seconds=1), "2h"),
        (dt.timedelta(days=1, hours=3, minutes=9), "1d 3h"),
        (dt.timedelta(seconds=-90), "-1m 30s"),
    ],
)
def test_a_duration_has_two_units_at_most(value: dt.timedelta | None, text: str):
    assert display.duration(value) == text


def test_a_summary_is_counts_with_their_names():
    counts = {"returned": 3, "workers_forgotten": 0}
    assert display.summary(counts) == "3 returned, 0 workers forgotten"


@pytest.mark.parametrize(
    ("status", "asked", "shown"),
    [
        ("running", False, "running"),
        ("running", True, "running, asked to stop"),
        ("cancelled", True, "cancelled"),
    ],
)
def test_a_state_says_that_a_running_job_was_asked_to_stop(
    status: str, asked: bool, shown: str
):
    at = dt.datetime(2031, 2, 3, tzinfo=dt.UTC) if asked else None
    assert display.state(status, at) == shown
