"""What may be enqueued: the check of a payload, its text, and the way back.

msgspec does the typed half: it checks a payload against a handler's dataclass, names the field that does
not fit, and decodes JSON straight into the dataclass.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import length_hint
from typing import Any

import msgspec
from django.conf import settings

from jobs.exceptions import InvalidPayload
from jobs.outcomes import describe
from jobs.registry import JobType
from jobs.wording import named, shown

MAX_DEPTH = 100
"""How deep lists and objects may be nested: far above any use, far below what a decoder refuses."""

_INTEGER_BITS = 63
_SMALLEST_INTEGER = -(2**63)
_PLAIN: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
}
_JSON_TYPES = "JSON has objects, lists, strings, numbers, true, false and null"


def encode(payload: Any, job_type: JobType) -> str:
    """The JSON text of ``payload``: a mapping, an instance of the handler's dataclass, or None for ``{}``.

    Raises :class:`InvalidPayload`, which names the field, for whatever could not be stored, could not be read
    back or is not what the handler declares. What is far too large is refused before it is copied.
    """
    if payload is None:
        payload = {}
    declared = job_type.payload_type
    limit: int = settings.JOBS_MAX_PAYLOAD
    try:
        if dataclasses.is_dataclass(payload) and not isinstance(payload, type):
            if declared is None or not isinstance(payload, declared):
                raise InvalidPayload(
                    f"job type {job_type.name!r} takes {_name(declared)}, got {_name(type(payload))}"
                )
            payload = _fields(payload, _Room(limit))
        if not issubclass(type(payload), dict):
            raise InvalidPayload(
                f"payload: must be an object (a dict or the handler's dataclass), got {_name(type(payload))}"
            )
        _check(payload, 0, _Room(limit))
    except _RefusedError as refused:
        raise InvalidPayload(f"payload{refused.path}: {refused.reason}") from None
    if declared is not None:
        _check_declared(payload, declared)
    data = msgspec.json.encode(payload, enc_hook=_plain)
    if len(data) > limit:
        raise InvalidPayload(
            f"payload: {len(data):,} bytes of JSON, at most {limit:,} are accepted "
            f"(JOBS_MAX_PAYLOAD); the largest field is {_largest_field(payload)}"
        )
    return data.decode()


def decode(text: str, job_type: JobType) -> Any:
    """The payload as the handler declares it: an instance of its dataclass, or a dict.

    Raises :class:`InvalidPayload` for what cannot be decoded, also for valid JSONB that Python cannot read.
    """
    try:
        return job_type.decoder.decode(text)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidPayload(f"payload: cannot be decoded: {error}") from error


class _RefusedError(Exception):
    """A value that cannot be stored. Its path is put together on the way out: most payloads need none."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = ""

    def inside(self, step: str) -> _RefusedError:
        self.path = step + self.path
        return self


class _Room:
    """The bytes of JSON that are left for a payload. What is looked at takes at most what it will really take."""

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit

    def take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise _RefusedError(
                f"with it the payload has more than {self.limit:,} bytes of JSON (JOBS_MAX_PAYLOAD)"
            )


# The base types' own methods are called throughout: a subclass may have overridden them, and the encoder does not ask it. By type() and
# not isinstance(), which believes an object that merely says what it is, as a lazy one does.
def _check(value: Any, depth: int, room: _Room) -> None:
    if depth > MAX_DEPTH:
        raise _RefusedError(f"nested deeper than {MAX_DEPTH} levels")
    kind = type(value)
    if kind is str or issubclass(kind, str):
        _check_text(value, room)
    elif value is None or kind is bool:
        return
    elif kind is int or issubclass(kind, int):
        if int.bit_length(value) > _INTEGER_BITS and int.__ne__(
            value, _SMALLEST_INTEGER
        ):
            raise _RefusedError("integer outside 64 bits; send it as a string")
    elif issubclass(kind, float):
        if not math.isfinite(value):
            raise _RefusedError(f"{float.__repr__(value)} is not a JSON number")
    elif kind is dict or issubclass(kind, dict):
        room.take(1 + dict.__len__(value))
        for key, item in dict.items(value):
            _check_key(key, room)
            try:
                _check(item, depth + 1, room)
            except _RefusedError as refused:
                raise refused.inside(_step(key)) from None
    elif issubclass(kind, list | tuple):
        items = _items(value)
        room.take(1 + length_hint(items))
        for index, item in enumerate(items):
            try:
                _check(item, depth + 1, room)
            except _RefusedError as refused:
                raise refused.inside(f"[{index}]") from None
    else:
        raise _RefusedError(f"{named(kind)} is not a JSON value; {_JSON_TYPES}")


def _items(value: Any) -> Iterator[Any]:
    """The items of a list or a tuple."""
    base = list if issubclass(type(value), list) else tuple
    return base.__iter__(value)


def _step(key: Any) -> str:
    """How a path goes on to this key or position."""
    if not issubclass(type(key), str):
        return f"[{shown(key)}]"
    text = str.__str__(key)
    return f".{text}" if text.isidentifier() and len(text) < 60 else f"[{shown(key)}]"


def _check_key(key: Any, room: _Room) -> None:
    if type(key) is not str and not issubclass(type(key), str):
        raise _RefusedError(f"key {shown(key)} must be a string")
    try:
        _check_text(key, room)
    except _RefusedError as refused:
        raise refused.inside(f": key {shown(key)}") from None


def _check_text(value: str, room: _Room) -> None:
    room.take(str.__len__(value))
    if type(value) is not str:
        value = str.__str__(value)
    if "\x00" in value:
        raise _RefusedError(f"NUL character at position {value.index(chr(0))}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise _RefusedError(f"lone surrogate at position {error.start}") from None


def _fields(payload: Any, room: _Room) -> Any:
    """A dataclass as a dict of what JSON has; what it holds is made into it too (a time, a set)."""
    try:
        _look_over(payload, 0, room)
        return msgspec.to_builtins(payload)
    except _RefusedError:
        raise
    except Exception as error:  # also what a value of the caller's raises
        for field in dataclasses.fields(payload):
            try:
                msgspec.to_builtins(getattr(payload, field.name, None))
            except Exception as cause:
                refused = _RefusedError(describe(cause))
                raise refused.inside(f".{field.name}") from cause
        raise _RefusedError(describe(error)) from error


def _look_over(value: Any, depth: int, room: _Room) -> None:
    """Refuse what is too large or nested too deep, before it is copied."""
    kind = type(value)
    room.take(1)
    if issubclass(kind, str):
        room.take(str.__len__(value))
        return
    if issubclass(kind, bytes | bytearray):
        room.take(len(value))
        return
    if depth > MAX_DEPTH:
        raise _RefusedError(f"nested deeper than {MAX_DEPTH} levels")
    parts: Iterable[tuple[Any, Any]]
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
        parts = ((name, getattr(value, name, None)) for name in names)
    elif issubclass(kind, dict):
        parts = dict.items(value)
    elif issubclass(kind, list | tuple):
        parts = enumerate(_items(value))
    else:
        return
    for step, item in parts:
        try:
            _look_over(item, depth + 1, room)
        except _RefusedError as refused:
            raise refused.inside(_step(step)) from None


def _check_declared(payload: Mapping[str, Any], declared: type) -> None:
    known = {field.name for field in dataclasses.fields(declared)}
    unknown = sorted(set(payload) - known)
    if unknown:
        raise InvalidPayload(
            f"payload{_step(unknown[0])}: {declared.__name__} has no such field; it has "
            + (", ".join(sorted(known)) or "none")
        )
    try:
        msgspec.convert(payload, type=declared)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `$")
        path = "payload" + where.rstrip("`")
        raise InvalidPayload(
            f"{path}: {message} (declared by {declared.__name__})"
        ) from None
    except Exception as error:  # its own __post_init__'s
        raise InvalidPayload(
            f"payload: {declared.__name__} refuses it: {describe(error)}"
        ) from error


def _plain(value: Any) -> Any:
    """What msgspec makes no JSON of, since it takes subclasses for types of their own: a SafeString, say."""
    for base, plain in _PLAIN.items():
        if isinstance(value, base):
            return plain(value)
    raise InvalidPayload(
        f"payload: {_name(type(value))} is not a JSON value; {_JSON_TYPES}"
    )


def _largest_field(payload: Mapping[str, Any]) -> str:
    sizes = {
        key: len(json.dumps(item, ensure_ascii=False).encode())
        for key, item in payload.items()
    }
    key = max(sizes, key=lambda name: sizes[name])
    return f"payload.{key} ({sizes[key]:,} bytes)"


def _name(cls: type | None) -> str:
    return "a plain dict" if cls is None else named(cls)
