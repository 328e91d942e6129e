"""What the text of an environment variable may be: kinds, each a pure parser.

A parser raises ValueError with what is wrong; what is accepted instead stands in its
kind's `accepted`, and `acw.env` puts the two together with the variable's name.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from jobs import durations
from notify import encryption
from notify.exceptions import InvalidSecret
from notify.signing import (
    SECRET_MAX_BYTES,
    SECRET_MIN_BYTES,
    checked_secret,
)

SHORTEST_INTERVAL = dt.timedelta(milliseconds=100)
_HOST_MAX = 255

T = TypeVar("T")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[T]):
    """What a variable may hold, and how its text becomes a value."""

    name: str
    accepted: str
    parse: Callable[[str], T]


def _flag(value: str) -> bool:
    if value.lower() in ("true", "1", "yes", "on"):
        return True
    if value.lower() in ("false", "0", "no", "off"):
        return False
    raise ValueError("it is neither true nor false")


def _duration(value: str) -> dt.timedelta:
    duration = durations.parse_duration(value)
    if not duration:
        raise ValueError("it must be longer than 0")
    return duration


def _interval(value: str) -> dt.timedelta:
    interval = _duration(value)
    if interval < SHORTEST_INTERVAL:
        raise ValueError(
            "so short an interval would keep the database busy for nothing"
        )
    return interval


def _host(value: str) -> str:
    if not value or len(value) > _HOST_MAX or not value.isprintable():
        raise ValueError("it is no name of a host")
    return value


def _webhook_secret(value: str) -> str:
    if value:
        try:
            return checked_secret(value)
        except InvalidSecret as error:
            raise ValueError(str(error)) from None
    return value


def _size(value: str) -> int:
    match = re.fullmatch(r"([0-9]{1,15}) ?(KiB|MiB|GiB|TiB)?", value)
    if match is None:
        raise ValueError("it is no number of bytes")
    number, unit = match.groups()
    exponent: int = (None, "KiB", "MiB", "GiB", "TiB").index(unit)
    return int(number) << (10 * exponent)


def _networks(value: str) -> list[Network]:
    return [ipaddress.ip_network(item) for item in _items(value)]


def _statuses(value: str) -> frozenset[int]:
    items = _items(value)
    for item in items:
        if not re.fullmatch(r"4[0-9]{2}", item):
            raise ValueError(f"{item!r} is no status from 400 to 499")
        if item == "410":
            raise ValueError("410 says that the receiver is gone")
    return frozenset(map(int, items))


def _web_url(value: str) -> str:
    if value and not re.fullmatch(r"(?i:https?)://[^\s/]\S*", value):
        raise ValueError("it is no web address")
    return value


def _fernet_keys(value: str) -> list[str]:
    keys = _items(value)
    for number, key in enumerate(keys, start=1):
        if not encryption.is_key(key):
            raise ValueError(f"key {number} of {len(keys)} is no Fernet key")
    return keys


def _dotted(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", value):
        raise ValueError("it is no dotted path of a class")
    return value


def _json_object(value: str) -> dict[str, Any]:
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        # Without what was found: it may be a part of a secret.
        raise ValueError("it is no JSON") from None
    if not isinstance(parsed, dict):
        raise ValueError("it is JSON, and no object")
    return parsed


def _items(value: str) -> list[str]:
    return [item.strip() for item in value.split(",") if item.strip()]


HOST = Kind(
    name="host's name",
    accepted=f"1 to {_HOST_MAX} printable characters, and no two hosts with the same",
    parse=_host,
)
INTERVAL = Kind(
    name="interval",
    accepted=f"{durations.ACCEPTED}, 100ms or more",
    parse=_interval,
)
WEBHOOK_SECRET = Kind(
    name="secret",
    accepted=f"{SECRET_MIN_BYTES} to {SECRET_MAX_BYTES} printable ASCII characters without spaces",
    parse=_webhook_secret,
)
TEXT = Kind(name="text", accepted="any text", parse=str)
FLAG = Kind(name="flag", accepted="true or false (or 1/0, yes/no, on/off)", parse=_flag)
DURATION = Kind(name="duration", accepted=durations.ACCEPTED, parse=_duration)
DURATION_OR_ZERO = Kind(
    name="duration or 0",
    accepted=f"{durations.ACCEPTED}, or 0",
    parse=durations.parse_duration,
)
NAMES = Kind(name="list", accepted="names with commas between them", parse=_items)
NETWORKS = Kind(
    name="list of networks",
    accepted="networks with commas between them, such as 10.0.0.0/8,fd00::/8",
    parse=_networks,
)
STATUSES = Kind(
    name="list of statuses",
    accepted="statuses from 400 to 499 but 410 with commas between them, or none",
    parse=_statuses,
)
DOTTED = Kind(
    name="dotted path",
    accepted="a class as Python imports it, such as package.module.Class",
    parse=_dotted,
)
JSON_OBJECT = Kind(
    name="JSON object",
    accepted='an object in JSON, such as {"bucket_name": "attachments"}',
    parse=_json_object,
)
WEB_URL = Kind(
    name="URL",
    accepted="an address that begins with https:// or http://",
    parse=_web_url,
)
FERNET_KEYS = Kind(
    name="list of Fernet keys",
    accepted="keys of 32 bytes in URL-safe base64, with commas between them",
    parse=_fernet_keys,
)


def size(*, minimum: int = 1, maximum: int = 2**60) -> Kind[int]:
    def parse(value: str) -> int:
        if (number := _size(value)) < minimum:
            raise ValueError("it is too small")
        if number > maximum:
            raise ValueError("it is too large")
        return number

    accepted = (
        "a number of bytes such as 262144, 256KiB, 1MiB or 2GiB,"
        f" from {minimum:,} to {maximum:,}"
    )
    return Kind(name="size", accepted=accepted, parse=parse)


def whole_number(*, minimum: int, maximum: int | None = None) -> Kind[int]:
    def parse(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", value):
            raise ValueError("it is no whole number")
        if int(value) < minimum:
            raise ValueError("it is too small")
        if maximum is not None and int(value) > maximum:
            raise ValueError("it is too large")
        return int(value)

    most = "or more" if maximum is None else f"to {maximum:,}"
    accepted = f"a whole number, {minimum} {most}"
    return Kind(name="whole number", accepted=accepted, parse=parse)


def at_most(kind: Kind[dt.timedelta], maximum: dt.timedelta) -> Kind[dt.timedelta]:
    """The kind of duration, with a longest one."""

    def parse(value: str) -> dt.timedelta:
        if (duration := kind.parse(value)) > maximum:
            raise ValueError("it is too long")
        return duration

    accepted = f"{kind.accepted}, at most {durations.written(maximum)}"
    return Kind(name=kind.name, accepted=accepted, parse=parse)


def choice(*options: str) -> Kind[str]:
    def parse(value: str) -> str:
        if value.lower() not in options:
            raise ValueError("it is none of the choices")
        return value.lower()

    accepted = " or ".join(options)
    return Kind(name="choice", accepted=accepted, parse=parse)


def subset(*options: str) -> Kind[list[str]]:
    def parse(value: str) -> list[str]:
        items = _items(value)
        for item in items:
            if item not in options:
                raise ValueError(f"{item!r} is none of the choices")
        return items

    accepted = f"any of {','.join(options)} with commas between them"
    return Kind(name="list", accepted=accepted, parse=parse)


def path(*, below: Path) -> Kind[Path]:
    """A path; a relative one is taken below the directory given."""

    def parse(value: str) -> Path:
        if not value:
            raise ValueError("it is empty")
        return below / value

    accepted = "a path, absolute or relative to the project's directory"
    return Kind(name="path", accepted=accepted, parse=parse)
