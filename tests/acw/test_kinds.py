from __future__ import annotations

import base64
import datetime as dt
import ipaddress
from pathlib import Path
from typing import Any

import pytest

from acw import kinds
from acw.kinds import Kind

# Fixed, since they are part of the names of tests.
HOUR = dt.timedelta(hours=1)
KEYS = [base64.urlsafe_b64encode(bytes([n] * 32)).decode() for n in (1, 2)]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (kinds.FLAG, "TRUE", True),
        (kinds.FLAG, "1", True),
        (kinds.FLAG, "off", False),
        (kinds.DURATION, "1h30m", dt.timedelta(hours=1.5)),
        (kinds.DURATION_OR_ZERO, "0", dt.timedelta(0)),
        (kinds.size(maximum=4 * 1024**2), "262144", 262_144),
        (kinds.size(maximum=4 * 1024**2), "256KiB", 262_144),
        (kinds.size(maximum=4 * 1024**2), "2 MiB", 2_097_152),
        (kinds.size(minimum=0), "0", 0),
        (kinds.size(), "3GiB", 3 * 1024**3),
        (kinds.NAMES, " a, b ,,c", ["a", "b", "c"]),
        (kinds.NAMES, "", []),
        (kinds.NETWORKS, "10.0.0.0/8", [ipaddress.ip_network("10.0.0.0/8")]),
        (kinds.NETWORKS, "::1/128,", [ipaddress.ip_network("::1/128")]),
        (
            kinds.DOTTED,
            "storages.backends.s3.S3Storage",
            "storages.backends.s3.S3Storage",
        ),
        (kinds.JSON_OBJECT, '{"a": 1}', {"a": 1}),
        (kinds.WEB_URL, "", ""),
        (kinds.WEB_URL, "HTTPS://example.com/x", "HTTPS://example.com/x"),
        (kinds.FERNET_KEYS, ",".join(KEYS), KEYS),
        (kinds.whole_number(minimum=1), "7", 7),
        (kinds.whole_number(minimum=1, maximum=7), "7", 7),
        (kinds.at_most(kinds.DURATION, HOUR), "60m", HOUR),
        (kinds.at_most(kinds.DURATION_OR_ZERO, HOUR), "0", dt.timedelta(0)),
        (kinds.choice("text", "json"), "JSON", "json"),
        (kinds.subset("https", "ssh"), "ssh,https", ["ssh", "https"]),
        (kinds.path(below=Path("/srv")), "data", Path("/srv/data")),
        (kinds.path(below=Path("/srv")), "/data", Path("/data")),
    ],
)
def test_reads(kind: Kind[Any], text: str, value: Any):
    assert kind.parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (kinds.FLAG, "ture", "neither true nor false"),
        (kinds.FLAG, "", "neither true nor false"),
        (kinds.DOTTED, "S3Storage", "no dotted path"),
        (kinds.DOTTED, "os; x.y", "no dotted path"),
        (kinds.JSON_OBJECT, "{'a': 1}", "no JSON"),
        (kinds.JSON_OBJECT, "[1]", "no object"),
        (kinds.DURATION, "0", "longer than 0"),
        (kinds.DURATION, "30", "no unit"),
        (kinds.size(maximum=4 * 1024**2), "0", "too small"),
        (kinds.size(maximum=4 * 1024**2), "5MiB", "too large"),
        (kinds.size(maximum=4 * 1024**2), "1GB", "no number of bytes"),
        (kinds.NETWORKS, "10.0.0.1/8", "host bits"),
        (kinds.NETWORKS, "localhost", "localhost"),
        (kinds.WEB_URL, "ftp://example.com", "no web address"),
        (kinds.WEB_URL, "https:///path", "no web address"),
        (kinds.FERNET_KEYS, f"{KEYS[0]},short", "key 2 of 2"),
        (kinds.whole_number(minimum=1), "0", "too small"),
        (kinds.whole_number(minimum=1, maximum=7), "8", "too large"),
        (kinds.at_most(kinds.DURATION, HOUR), "60m1us", "too long"),
        (kinds.at_most(kinds.DURATION, HOUR), "0", "longer than 0"),
        (kinds.whole_number(minimum=1), "-1", "no whole number"),
        (kinds.whole_number(minimum=1), "two", "no whole number"),
        (kinds.whole_number(minimum=1), "٣", "no whole number"),
        (kinds.choice("text", "json"), "xml", "none of the choices"),
        (kinds.subset("https", "ssh"), "https,ext", "'ext' is none of the choices"),
        (kinds.path(below=Path("/srv")), "", "empty"),
    ],
)
def test_refuses(kind: Kind[Any], text: str, reason: str):
    with pytest.raises(ValueError, match=reason):
        kind.parse(text)


def test_the_error_about_a_key_does_not_show_it():
    with pytest.raises(ValueError, match="Fernet") as caught:
        kinds.FERNET_KEYS.parse("almost-a-key")
    assert "almost" not in str(caught.value)


@pytest.mark.parametrize("value", ["", "x" * 256, "a\tb"])
def test_a_host_has_a_name(value: str):
    """Hosts without one would take each other's jobs."""
    with pytest.raises(ValueError, match="no name of a host"):
        kinds.HOST.parse(value)
    assert kinds.HOST.parse("build-1.example") == "build-1.example"


def test_an_interval_is_no_busy_loop():
    assert kinds.INTERVAL.parse("100ms").total_seconds() == 0.1
    for value in ("99ms", "1us"):
        with pytest.raises(ValueError, match="busy for nothing"):
            kinds.INTERVAL.parse(value)


@pytest.mark.parametrize(
    "value", ["short", "x" * 65, "has spaces in it, and is long enough"]
)
def test_a_bad_webhook_secret_is_refused_without_being_quoted(value: str):
    with pytest.raises(ValueError, match="the secret must be") as refused:
        kinds.WEBHOOK_SECRET.parse(value)
    assert value not in str(refused.value)


def test_no_webhook_secret_is_none():
    assert kinds.WEBHOOK_SECRET.parse("") == ""


def test_json_that_is_nested_too_deeply_is_refused():
    with pytest.raises(ValueError, match="no JSON"):
        kinds.JSON_OBJECT.parse("[" * 100_000)
