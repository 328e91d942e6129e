from __future__ import annotations

import time

import pytest

from acw.redact import redact


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("https://u:hunter2@host/p", "https://u:***@host/p"),
        ("postgresql://u:p@ss@h1,h2:5432/db", "postgresql://u:***@h1,h2:5432/db"),
        ("https://ghp_token@host/r.git", "https://***@host/r.git"),
        ("https://ghp_token:@host/r.git", "https://***@host/r.git"),
        ("https://ghp_token:x-oauth-basic@host/r", "https://***@host/r"),
        ("ssh://git@host/r.git", "ssh://git@host/r.git"),
        ("https://host/hook?token=hunter2 failed", "https://host/hook?*** failed"),
        ("https://host?x=a@b", "https://host?***"),
        (
            "in 'https://u:p@h/' and \"https://h/?q\"",
            "in 'https://u:***@h/' and \"https://h/?***\"",
        ),
        ("https://host/a@b", "https://host/a@b"),
        ("no address: user:pass@host?x", "no address: user:pass@host?x"),
    ],
)
def test_hides_what_is_secret_and_keeps_the_rest(text: str, redacted: str):
    assert redact(text) == redacted


@pytest.mark.parametrize(
    "text", ["a" * 200_000 + "://", "x://" * 50_000, "https://u:" * 20_000]
)
def test_hostile_text_costs_no_more_than_its_length(text: str):
    before = time.process_time()
    redact(text)
    assert time.process_time() - before < 5
