from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

import pytest
from django.core import checks
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from jobs.doctor import Finding, Level
from jobs.probes import database


def only(findings: Iterable[Finding]) -> Finding:
    (finding,) = findings
    return finding


@pytest.mark.django_db
def test_a_database_that_answers_is_named_with_its_version():
    finding = only(database.database())
    assert finding.level is Level.OK
    assert finding.message.startswith("PostgreSQL ")
    assert finding.message.endswith("read-write")


@pytest.mark.django_db
def test_a_database_that_takes_no_writes_is_an_error():
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
    finding = only(database.database())
    assert finding.level is Level.ERROR
    assert "read-only, takes no writes" in finding.message
    assert "target_session_attrs=read-write" in finding.advice


@pytest.mark.django_db
def test_a_server_that_is_too_old_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(database, "OLDEST_VERSION", 99)
    finding = only(database.database())
    assert finding.level is Level.ERROR
    assert "ACW needs 99 or newer" in finding.message


@pytest.mark.django_db(transaction=True)
def test_a_database_that_refuses_connections_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
):
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "NAME", "no_such_database")
    finding = only(database.database())
    connection.close()
    assert finding.level is Level.ERROR
    assert "the database does not answer" in finding.message
    assert "no_such_database" in finding.message
    assert "DATABASE_URL" in finding.advice


@pytest.mark.django_db
def test_migrations_are_applied():
    assert only(database.migrations()).level is Level.OK


@pytest.mark.django_db
def test_a_missing_migration_is_named():
    MigrationRecorder(connection).record_unapplied("jobs", "0001_initial")
    finding = only(database.migrations())
    assert finding.level is Level.ERROR
    assert "jobs.0001_initial" in finding.message
    assert "manage.py migrate" in finding.advice


def test_the_system_checks_are_asked():
    assert only(database.settings()).level is Level.OK


def test_what_the_system_checks_find_is_found(monkeypatch: pytest.MonkeyPatch):
    messages = [
        checks.Error("broken", hint="mend it", id="test.E001"),
        checks.Warning("hm", id="test.W001"),
    ]
    monkeypatch.setattr(checks, "run_checks", lambda: messages)
    serious, mild = database.settings()
    assert (serious.level, serious.message, serious.advice) == (
        Level.ERROR,
        "test.E001: broken",
        "mend it",
    )
    assert (mild.level, mild.message, mild.advice) == (
        Level.WARNING,
        "test.W001: hm",
        "",
    )


@pytest.mark.django_db
def test_the_clocks_of_this_host_and_the_database_agree():
    assert only(database.clock()).level is Level.OK


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("skew", "said"),
    [
        (dt.timedelta(minutes=10), "10m ahead of"),
        (dt.timedelta(minutes=-10), "9m 59s behind"),
    ],
)
def test_a_clock_that_is_off_is_a_warning(skew: dt.timedelta, said: str):
    finding = database.compare_clocks(
        lambda: dt.datetime.now(dt.UTC) + skew + dt.timedelta(seconds=0.5)
    )
    assert finding.level is Level.WARNING
    assert said in finding.message
    assert "NTP" in finding.advice
