from __future__ import annotations

import datetime as dt
import decimal
import json
import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.utils.safestring import mark_safe
from pytest_django import Settings

from jobs import payload
from jobs.context import JobContext
from jobs.exceptions import InvalidPayload
from jobs.models import Priority, Status
from jobs.registry import JobType


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Order:
    number: int
    lines: list[str]
    at: dt.datetime | None = None
    points: list[Point] = field(default_factory=list)


@dataclass
class Other:
    number: int


def plain_handler(context: JobContext, payload: dict[str, Any]) -> None: ...


def typed_handler(context: JobContext, payload: Order) -> None: ...


PLAIN = JobType(name="plain", handler=plain_handler)
TYPED = JobType(name="typed", handler=typed_handler)


def nested(depth: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return {"a": value}


def test_none_is_an_empty_object() -> None:
    assert payload.encode(None, PLAIN) == "{}"


def test_what_is_encoded_comes_back() -> None:
    value = {"a": [1, 2.5, None, True, "é😀\u2028"], "b": {"c": "x"}}
    assert payload.decode(payload.encode(value, PLAIN), PLAIN) == value


def test_a_dataclass_comes_back_as_itself() -> None:
    value = Order(1, ["a"], dt.datetime(2026, 1, 2, tzinfo=dt.UTC), [Point(1, 2)])
    assert payload.decode(payload.encode(value, TYPED), TYPED) == value


def test_a_dict_that_fits_the_dataclass_is_accepted() -> None:
    text = payload.encode({"number": 1, "lines": []}, TYPED)
    assert payload.decode(text, TYPED) == Order(1, [])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"number": "1", "lines": []}, "payload.number: Expected `int`, got `str`"),
        ({"number": 1}, "payload: Object missing required field `lines`"),
        ({"number": 1, "lines": [1]}, "payload.lines[0]: Expected `str`"),
        (
            {"number": 1, "lines": [], "points": [{"x": 1.5}]},
            "payload.points[0].x: Expected `int`",
        ),
        (
            {"number": 1, "lines": [], "size": 2},
            "payload.size: Order has no such field",
        ),
        ({"number": None, "lines": []}, "payload.number: Expected `int`, got `null`"),
        (Other(1), "'typed' takes Order, got Other"),
        (Order(1, ["\x00"]), "payload.lines[0]: NUL"),
        (Order("x", []), "payload.number"),  # type: ignore[arg-type]
    ],
)
def test_what_the_dataclass_does_not_declare_is_refused(
    value: Any, message: str
) -> None:
    with pytest.raises(InvalidPayload) as caught:
        payload.encode(value, TYPED)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "payload: must be an object"),
        ("text", "payload: must be an object"),
        (1, "payload: must be an object"),
        (Other(1), "'plain' takes a plain dict, got Other"),
        (Other, "payload: must be an object"),
        ({"a": float("nan")}, "payload.a: nan is not a JSON number"),
        ({"a": [0, float("inf")]}, "payload.a[1]: inf is not a JSON number"),
        ({"a": {"b": [0, 0, "x\x00"]}}, "payload.a.b[2]: NUL character at position 1"),
        ({"a\x00": 1}, "NUL character at position 1"),
        ({"a": "\ud800"}, "payload.a: lone surrogate at position 0"),
        ({"\udfff": 1}, "lone surrogate"),
        ({1: 2}, "payload: key 1 must be a string"),
        ({"a": {None: 2}}, "payload.a: key None must be a string"),
        ({"a": b"x"}, "payload.a: bytes is not a JSON value"),
        ({"a": {1, 2}}, "payload.a: set is not a JSON value"),
        (
            {"a": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)},
            "payload.a: datetime is not a JSON value",
        ),
        ({"a": decimal.Decimal(1)}, "payload.a: Decimal is not a JSON value"),
        ({"a": uuid.uuid4()}, "payload.a: UUID is not a JSON value"),
        ({"a": 10**5000}, "payload.a: integer outside 64 bits"),
        ({"a": -(2**63) - 1}, "payload.a: integer outside 64 bits"),
        (nested(9_000), "nested deeper than 100 levels"),
        (nested(101), "nested deeper than 100 levels"),
    ],
)
def test_what_json_or_postgresql_cannot_hold_is_refused_by_field(
    value: Any, message: str
) -> None:
    with pytest.raises(InvalidPayload) as caught:
        payload.encode(value, PLAIN)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "value", [{"a": 2**63 - 1}, {"a": -(2**63)}, nested(99), {"": ""}, {"a": ()}]
)
def test_what_lies_just_inside_the_limits_is_accepted(value: dict[str, Any]) -> None:
    assert payload.decode(payload.encode(value, PLAIN), PLAIN) == json.loads(
        json.dumps(value)
    )


def test_the_limit_counts_bytes_and_the_error_names_the_largest_field(
    settings: Settings,
) -> None:
    settings.JOBS_MAX_PAYLOAD = 30
    assert payload.encode({"a": "x" * 22}, PLAIN)
    with pytest.raises(InvalidPayload) as caught:
        payload.encode({"s": 1, "a": "é" * 11}, PLAIN)
    assert "JOBS_MAX_PAYLOAD" in str(caught.value)
    assert "payload.a" in str(caught.value)


@pytest.mark.parametrize("job_type", [PLAIN, TYPED])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        '"x"',
        "[" * 9_000 + "]" * 9_000,
        '{"number": ' + "9" * 5_000 + "}",
        '{"a": NaN',
    ],
)
def test_what_cannot_be_decoded_says_so_and_raises_nothing_else(
    text: str, job_type: JobType
) -> None:
    with pytest.raises(InvalidPayload):
        payload.decode(text, job_type)


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Real(float):
    pass


def test_subclasses_of_what_json_has_are_what_they_derive_from() -> None:
    """A template's SafeString, an enum's members."""
    value = {
        "safe": mark_safe("<p>"),
        "text": Text("x"),
        "number": Number(3),
        "real": Real(0.5),
        "status": Status.DEAD,
        "level": Priority.LOW,
    }
    assert json.loads(payload.encode(value, PLAIN)) == {
        "safe": "<p>",
        "text": "x",
        "number": 3,
        "real": 0.5,
        "status": "dead",
        "level": 3,
    }
