"""What may be enqueued: the check of a payload, its text, and the way back.

msgspec does the typed half: it checks a payload against a handler's dataclass, names the field that does
not fit, and decodes JSON straight into the dataclass.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

import msgspec
from django.conf import settings

from jobs.exceptions import InvalidPayload
from jobs.registry import JobType

MAX_DEPTH = 100
"""How deep lists and objects may be nested: far above any use, far below what a decoder refuses."""

_LARGEST_INTEGER = 2**63 - 1
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
    _check(payload, "payload", 0)
    if declared is not None:
        _check_declared(payload, declared)
    text = json.dumps(
        payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    size = len(text.encode())
    if size > settings.JOBS_MAX_PAYLOAD:
        raise InvalidPayload(
            f"payload: {size:,} bytes of JSON, at most {settings.JOBS_MAX_PAYLOAD:,} are accepted "
            f"(JOBS_MAX_PAYLOAD); the largest field is {_largest_field(payload)}"
        )
    return text


def decode(text: str, job_type: JobType) -> Any:
    """The payload as the handler declares it: an instance of its dataclass, or a dict.

    Raises :class:`InvalidPayload` for what cannot be decoded, also for valid JSONB that Python cannot read.
    """
    try:
        if job_type.payload_type is not None:
            return msgspec.json.decode(text, type=job_type.payload_type)
        value = json.loads(text)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidPayload(f"payload: cannot be decoded: {error}") from error
    if not isinstance(value, dict):
        raise InvalidPayload(f"payload: must be an object, got {_name(type(value))}")
    return value


def _check(value: Any, path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidPayload(f"{path}: nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        _check_text(value, path)
    elif value is None or isinstance(value, bool):
        return
    elif isinstance(value, int):
        if not -_LARGEST_INTEGER - 1 <= value <= _LARGEST_INTEGER:
            raise InvalidPayload(
                f"{path}: integer outside 64 bits; send it as a string"
            )
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidPayload(f"{path}: {value} is not a JSON number")
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise InvalidPayload(f"{path}: key {key!r} must be a string")
            _check_text(key, f"{path}: key {key!r}")
            _check(item, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]", depth + 1)
    else:
        raise InvalidPayload(
            f"{path}: {_name(type(value))} is not a JSON value; {_JSON_TYPES}"
        )


def _check_text(value: str, path: str) -> None:
    if "\x00" in value:
        raise InvalidPayload(f"{path}: NUL character at position {value.index(chr(0))}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidPayload(
                f"{path}: lone surrogate at position {error.start}"
            ) from None


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


def _largest_field(payload: Mapping[str, Any]) -> str:
    sizes = {
        key: len(json.dumps(item, ensure_ascii=False).encode())
        for key, item in payload.items()
    }
    key = max(sizes, key=lambda name: sizes[name])
    return f"payload.{key} ({sizes[key]:,} bytes)"


def _name(cls: type | None) -> str:
    return "a plain dict" if cls is None else cls.__name__
