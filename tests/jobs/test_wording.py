from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobs import wording


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


class Sly(str):
    """Lies about itself, as code of others may."""

    __slots__ = ()

    def __repr__(self) -> str:
        raise RuntimeError("no words")

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __getitem__(self, key: Any) -> str:
        raise RuntimeError("no parts")


class Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (lambda: 1, "1"),
        (lambda: 1.5, "1.5"),
        (lambda: None, "None"),
        (lambda: True, "True"),
        (lambda: "a\x00\ud800", r"'a\x00\ud800'"),
        (lambda: Sly("abc"), "'abc'"),
        (lambda: "x" * 61, repr("x" * 60) + "…"),
        (lambda: 10**5000, "an integer of 16,610 bits"),
        (lambda: b"x" * 1_000, "an object of type bytes"),
        (Silent, "an object of type Silent"),
        (lambda: Nameless("Kind", (), {})(), "an object of type Kind"),
        (lambda: type("K" * 1_000, (), {})(), "an object of type " + "K" * 60),
    ],
)
def test_a_value_is_shown_shortly_and_without_its_own_code(
    value: Callable[[], object], shown: str
) -> None:
    assert wording.shown(value()) == shown
