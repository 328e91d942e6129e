from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import OperationalError, connection

from jobs import doctor
from jobs.doctor import Finding, Level, error, ok, probe, warning


@pytest.fixture(autouse=True)
def no_probes() -> Iterator[None]:
    """Only those that the test registers."""
    before = dict(doctor._probes)
    doctor._probes.clear()
    yield
    doctor._probes.clear()
    doctor._probes.update(before)


def found() -> list[tuple[str, Level, str]]:
    return [(name, f.level, f.message) for name, f in doctor.examine()]


def test_every_finding_comes_with_its_probe():
    @probe("two")
    def two() -> Iterator[Finding]:
        yield ok("fine")
        yield warning("hm", advice="look")

    assert found() == [("two", Level.OK, "fine"), ("two", Level.WARNING, "hm")]


def test_vital_probes_come_first():
    probe("later")(lambda: [ok("fine")])
    probe("vital", vital=True)(lambda: [ok("fine")])
    assert doctor.probe_names() == ["vital", "later"]


def test_where_a_vital_probe_finds_an_error_the_others_are_not_asked():
    asked: list[str] = []

    @probe("other")
    def other() -> Iterator[Finding]:
        asked.append("other")
        yield ok("fine")

    probe("vital", vital=True)(lambda: [error("down", advice="start it")])
    assert found() == [
        ("vital", Level.ERROR, "down"),
        ("other", Level.WARNING, "not checked, because of what vital found"),
    ]
    assert asked == []


def test_a_warning_of_a_vital_probe_stops_nothing():
    probe("vital", vital=True)(lambda: [warning("hm", advice="look")])
    probe("other")(lambda: [ok("fine")])
    assert found()[1] == ("other", Level.OK, "fine")


def test_an_error_of_another_probe_stops_nothing():
    probe("one")(lambda: [error("broken", advice="mend it")])
    probe("two")(lambda: [ok("fine")])
    assert found()[1] == ("two", Level.OK, "fine")


@pytest.mark.django_db(transaction=True)
def test_a_probe_whose_statement_fails_is_a_finding():
    @probe("tables")
    def tables() -> Iterator[Finding]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM no_such_table")
        yield ok("never reached")

    probe("next")(lambda: [ok("fine")])
    (first, second) = found()
    assert first[:2] == ("tables", Level.ERROR)
    assert "no_such_table" in first[2]
    assert second == ("next", Level.OK, "fine")


@pytest.mark.django_db(transaction=True)
def test_a_probe_gets_a_new_connection_after_one_that_was_cut():
    @probe("cut")
    def cut() -> Iterator[Finding]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        yield ok("never reached")

    @probe("next")
    def following() -> Iterator[Finding]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        yield ok("fine")

    assert [level for _, level, _ in found()] == [Level.ERROR, Level.OK]


def test_a_broken_probe_is_a_finding_that_says_where():
    def broken() -> Iterator[Finding]:
        raise KeyError("x")

    probe("broken")(broken)
    probe("next")(lambda: [ok("fine")])
    (first, second) = found()
    assert first[:2] == ("broken", Level.ERROR)
    assert "KeyError: 'x'" in first[2]
    assert "test_doctor.py:" in first[2]
    assert second[1] is Level.OK


@pytest.mark.django_db
def test_what_a_probe_found_before_it_broke_stays():
    @probe("half")
    def half() -> Iterator[Finding]:
        yield warning("hm", advice="look")
        raise OperationalError("gone")

    assert [level for _, level, _ in found()] == [Level.WARNING, Level.ERROR]


def test_a_name_is_taken_once():
    probe("one")(lambda: [ok("fine")])
    with pytest.raises(ValueError, match="'one' is already registered"):
        probe("one")(lambda: [ok("fine")])
