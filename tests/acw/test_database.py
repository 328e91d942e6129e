from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from acw import database
from acw.embedded import binaries

KIND = database.kind(embedded_in=Path("/srv/postgres"))


def parse(url: str) -> dict[str, Any]:
    return KIND.parse(url)


def test_a_url_becomes_djangos_entry():
    entry = parse("postgres://ann:p%40ss@db.example:5433/acw?sslmode=require")
    assert entry["ENGINE"] == "django.db.backends.postgresql"
    assert (entry["NAME"], entry["USER"], entry["PASSWORD"]) == ("acw", "ann", "p@ss")
    assert (entry["HOST"], entry["PORT"]) == ("db.example", "5433")
    assert entry["OPTIONS"]["sslmode"] == "require"
    assert not database.is_embedded(entry)


def test_several_hosts_are_handed_to_libpq():
    entry = parse("postgresql://h1:5432,h2:5433/acw")
    assert (entry["HOST"], entry["PORT"]) == ("h1,h2", "5432,5433")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://h1,h2/acw",
        "postgresql:///acw?host=/run/a,/run/b&port=5432,5432",
        "postgresql:///acw?hostaddr=192.0.2.1,192.0.2.2",
    ],
)
def test_of_several_hosts_the_one_that_takes_writes_is_meant(url: str):
    assert parse(url)["OPTIONS"]["target_session_attrs"] == "read-write"


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("postgresql://h1,h2/acw?target_session_attrs=primary", "primary"),
        ("postgresql://h1,h2/acw?target_session_attrs=any", "any"),
        ("postgresql://h1/acw", None),
        ("postgresql:///acw", None),
    ],
)
def test_which_host_is_meant_is_otherwise_as_the_url_says(url: str, wanted: str | None):
    assert parse(url)["OPTIONS"].get("target_session_attrs") == wanted


def test_a_socket_directory_may_be_the_host():
    entry = parse("postgresql:///acw?host=/run/postgresql")
    assert entry["HOST"] == "/run/postgresql"


def test_a_dead_network_is_noticed_and_the_url_has_the_last_word():
    options = parse("postgresql://h/acw?connect_timeout=3&keepalives_idle=60")[
        "OPTIONS"
    ]
    assert options["tcp_user_timeout"] == "30000"
    assert options["keepalives_interval"] == "10"
    assert (options["connect_timeout"], options["keepalives_idle"]) == ("3", "60")
    assert options["application_name"] == "acw"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mysql://ann:hunter2@h/acw", "scheme"),
        ("h/acw", "scheme"),
        ("postgresql://ann:hunter2%zz@h/acw", "libpq cannot read it"),
        ("postgresql://ann:hunter2@h/acw?hunter2=1", "libpq cannot read it"),
        ("postgresql://ann:hunter2@h", "no database"),
        ("postgresql://ann:hunter2@h:hunter2/acw", "a port in it is no number"),
    ],
)
def test_a_bad_url_is_refused_without_quoting_it(url: str, reason: str):
    with pytest.raises(ValueError, match=reason) as caught:
        parse(url)
    assert "hunter2" not in str(caught.value)


def test_no_url_means_the_embedded_server():
    entry = parse("")
    assert database.is_embedded(entry)
    assert entry["EMBEDDED_DATA_DIR"] == Path("/srv/postgres")


def test_without_the_wheel_the_error_says_both_ways_out(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(binaries, "PACKAGE", "no-such-package")
    with pytest.raises(ImproperlyConfigured, match=r"set DATABASE_URL .* or install"):
        parse("")
