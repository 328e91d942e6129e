from __future__ import annotations

import argparse

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings

from jobs import schema
from jobs.enqueue import enqueue
from jobs.events import LogEvent
from jobs.management.commands import runjobs
from jobs.models import Job, Status


def test_switched_off_it_says_so(
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings.JOBS_ENABLED = False
    call_command("runjobs")
    assert "JOBS_ENABLED is false" in capsys.readouterr().out
    assert [record.msg for record in caplog.records] == [LogEvent.MODULE_DISABLED]


@pytest.mark.django_db(transaction=True)
def test_it_ends_with_the_workers_status(noop: str) -> None:
    job = enqueue(noop)
    with pytest.raises(SystemExit) as ended:
        call_command("runjobs", "--drain", "--workers", "1", "--queues", "default")
    assert ended.value.code == 0
    job.refresh_from_db()
    assert job.status == Status.COMPLETED


@pytest.mark.django_db(transaction=True)
def test_it_waits_for_a_database_that_is_away_when_it_starts(
    noop: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers = iter([psycopg.OperationalError("starting up")] * 2)

    def unapplied() -> list[str]:
        for error in answers:
            raise error
        return schema.unapplied_migrations()

    monkeypatch.setattr(runjobs, "unapplied_migrations", unapplied)
    enqueue(noop)
    with pytest.raises(SystemExit):
        call_command("runjobs", "--drain", "--workers", "1")
    assert Job.objects.get().status == Status.COMPLETED
    events = [record.msg for record in caplog.records]
    assert events[0] == LogEvent.DATABASE_UNAVAILABLE
    assert LogEvent.DATABASE_RECOVERED in events


@pytest.mark.django_db
def test_it_does_not_work_on_tables_that_it_does_not_know() -> None:
    MigrationRecorder.Migration.objects.filter(app="jobs").delete()
    with pytest.raises(CommandError, match=r"jobs.0001_initial.*manage.py migrate"):
        call_command("runjobs")


@pytest.mark.parametrize("text", ["0", "two", "1001"])
def test_a_number_of_threads_is_whole_and_reasonable(text: str) -> None:
    with pytest.raises(CommandError, match=r"--workers: must be .*, got"):
        call_command("runjobs", f"--workers={text}")


@pytest.mark.parametrize("text", ["512", "0MB", "much"])
def test_a_size_has_its_unit(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="with its unit, such as"):
        runjobs._size(text)


@pytest.mark.django_db(transaction=True)
def test_a_limit_below_what_is_needed_anyway_is_refused() -> None:
    with pytest.raises(CommandError, match=r"--max-rss is 5 MB, and this process has"):
        call_command("runjobs", "--drain", "--max-rss", "5MB")


@pytest.mark.django_db(transaction=True)
def test_the_limits_reach_the_worker(
    noop: str, caplog: pytest.LogCaptureFixture
) -> None:
    enqueue(noop)
    with caplog.at_level("INFO", logger="jobs"), pytest.raises(SystemExit) as ended:
        call_command("runjobs", "--max-jobs", "1", "--max-rss", "64GB")
    assert ended.value.code == 0
    assert LogEvent.MODULE_RECYCLING in [record.msg for record in caplog.records]


def test_queues_are_names_with_commas_between() -> None:
    assert runjobs._names("mail, host:here ,") == ["mail", "host:here"]
    with pytest.raises(argparse.ArgumentTypeError, match="at least one queue"):
        runjobs._names(" , ")


@pytest.mark.parametrize("text", ["mail,\udcff", "q" * 10_000], ids=["no text", "long"])
def test_what_can_be_no_queues_name_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"queue: (must|10,000)"):
        runjobs._names(text)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("own", [False, True])
def test_only_the_process_of_the_command_line_is_ended(
    own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(status: int) -> None:
        left.append(status)
        raise SystemExit(status)

    left: list[int] = []
    monkeypatch.setattr(runjobs, "leave", leave)
    arguments = ["runjobs", "--drain", "--workers", "1"]
    command_line = runjobs.Command().run_from_argv
    with pytest.raises(SystemExit) as ended:
        command_line(["manage.py", *arguments]) if own else call_command(*arguments)
    assert ended.value.code == 0
    assert left == ([0] if own else [])
