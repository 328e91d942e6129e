from __future__ import annotations

import pytest

from workspaces.plumbing import progress
from workspaces.plumbing.progress import Progress


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    return []


def test_the_newest_whole_line_is_told(told: list[str]):
    hear = Progress(told.append)
    hear(b"Receiving objects:   1% (1/100)\rReceiving objects:   2%")
    hear(b" (2/100)\rReceiving objects:  3% (3/100)\r")
    hear(b"\n")
    assert told == [
        "Receiving objects:   1% (1/100)",
        "Receiving objects:  3% (3/100)",
    ]


def test_it_is_told_now_and_then_only():
    told: list[str] = []
    hear = Progress(told.append)
    for number in range(1000):
        hear(b"line %d\n" % number)
    assert told[0] == "line 0"
    assert len(told) < 100


def test_the_same_is_not_told_again(told: list[str]):
    hear = Progress(told.append)
    for _ in range(3):
        hear(b"remote: counting\n")
    assert told == ["remote: counting"]


def test_what_a_remote_says_is_bounded_and_presentable(told: list[str]):
    hear = Progress(told.append)
    hear(b"remote: \x1b[2J https://user:SECRET@git.example/ " + b"x" * 300 + b"\n")
    for _ in range(100):
        hear(b"y" * 65536)
    hear(b"\n")
    assert all(len(line) <= 150 and line.isprintable() for line in told)
    assert "SECRET" not in "".join(told)
    assert len(hear._rest) <= 4096
