from __future__ import annotations

import pytest

from jobs.redaction import redact


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("no url here", "no url here"),
        ("https://host/path", "https://host/path"),
        ("https://user:pass@host/path", "https://user:***@host/path"),
        ("https://token@host/path", "https://***@host/path"),
        ("https://token:@host/path", "https://***@host/path"),
        ("https://token:x-oauth-basic@host/path", "https://***@host/path"),
        ("https://:pass@host/path", "https://:***@host/path"),
        ("ssh://git@host:22/x", "ssh://git@host:22/x"),
        ("ssh://git:pass@host:22/x", "ssh://git:***@host:22/x"),
        (
            "a https://u:p@h/x b http://v:q@i/y c",
            "a https://u:***@h/x b http://v:***@i/y c",
        ),
        ("https://host/hook?token=SECRET&x=1 failed", "https://host/hook?*** failed"),
        (
            "postgresql://u:p%40@h:5432/db?sslpassword=x",
            "postgresql://u:***@h:5432/db?***",
        ),
        (
            "fatal: could not read 'https://u:p@h/r.git'",
            "fatal: could not read 'https://u:***@h/r.git'",
        ),
        ("https://user:p/w@host/x", "https://user:***@host/x"),
        ("https://user:p?w@host/x", "https://user:***@host/x"),
        ("https://user:p@w@host/x", "https://user:***@host/x"),
        ("HTTPS://user:pass@host", "HTTPS://user:***@host"),
        ("mail me@example.org", "mail me@example.org"),
    ],
)
def test_credentials_in_urls_are_taken_out(text: str, redacted: str) -> None:
    assert redact(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "x" * 100_000 + "://",
        "a:" * 50_000 + "//",
        "://" * 30_000,
        "h://" + "@" * 90_000,
    ],
)
def test_hostile_text_of_any_shape_ends(text: str) -> None:
    assert isinstance(redact(text), str)
