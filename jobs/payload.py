"""What may be enqueued: the check of a payload, its text, and the way back.

msgspec does the typed half: it checks a payload against a handler's dataclass, names the field that does
not fit, and decodes JSON straight into the dataclass.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from django.conf import settings

from jobs.exceptions import InvalidPayload
from jobs.registry import JobType

MAX_DEPTH = 100
"""How deep lists and objects may be nested: far above any use, far below what a decoder refuses."""

_LARGEST_INTEGER = 2**63 - 1
_PLAIN: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
}
_JSON_TYPES = "JSON has objects, lists, strings, numbers, true, false and null"


def encode(payload: Any, job_type: JobType) -> str:
    """The JSON text of ``payload``: a mapping, an instance of the handler's dataclass, or None for ``{}``.

    Raises :class:`InvalidPayload`, which names the field, for whatever could not be stored, could not be read
    back or is not what the handler declares.
    """
    if payload is None:
        payload = {}
    declared = job_type.payload_type
    if dataclasses.is_dataclass(payload) and not isinstance(payload, type):
        if declared is None or not isinstance(payload, declared):
            raise InvalidPayload(
                f"job type {job_type.name!r} takes {_name(declared)}, got {_name(type(payload))}"
            )
        payload = msgspec.to_builtins(payload)
    if not isinstance(payload, dict):
        raise InvalidPayload(
            f"payload: must be an object (a dict or the handler's dataclass), got {_name(type(payload))}"
        )
    try:
        _check(payload, 0)
    except _RefusedError as refused:
        raise InvalidPayload(f"payload{refused.path}: {refused.reason}") from None
    if declared is not None:
        _check_declared(payload, declared)
    data = msgspec.json.encode(payload, enc_hook=_plain)
    if len(data) > settings.JOBS_MAX_PAYLOAD:
        raise InvalidPayload(
            f"payload: {len(data):,} bytes of JSON, at most {settings.JOBS_MAX_PAYLOAD:,} are accepted "
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


def _check(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _RefusedError(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        _check_text(value)
    elif value is None or isinstance(value, bool):
        return
    elif isinstance(value, int):
        if not -_LARGEST_INTEGER - 1 <= value <= _LARGEST_INTEGER:
            raise _RefusedError("integer outside 64 bits; send it as a string")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _RefusedError(f"{value} is not a JSON number")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_key(key)
            try:
                _check(item, depth + 1)
            except _RefusedError as refused:
                raise refused.inside(f".{key}") from None
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            try:
                _check(item, depth + 1)
            except _RefusedError as refused:
                raise refused.inside(f"[{index}]") from None
    else:
        raise _RefusedError(f"{_name(type(value))} is not a JSON value; {_JSON_TYPES}")


def _check_key(key: Any) -> None:
    if not isinstance(key, str):
        raise _RefusedError(f"key {key!r} must be a string")
    try:
        _check_text(key)
    except _RefusedError as refused:
        raise refused.inside(f": key {key!r}") from None


def _check_text(value: str) -> None:
    if "\x00" in value:
        raise _RefusedError(f"NUL character at position {value.index(chr(0))}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise _RefusedError(f"lone surrogate at position {error.start}") from None


def _check_declared(payload: Mapping[str, Any], declared: type) -> None:
    known = {field.name for field in dataclasses.fields(declared)}
    unknown = sorted(set(payload) - known)
    if unknown:
        raise InvalidPayload(
            f"payload.{unknown[0]}: {declared.__name__} has no such field; it has "
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
    return "a plain dict" if cls is None else cls.__name__
