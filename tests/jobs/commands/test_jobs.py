from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from jobs.identifiers import uuid7
from jobs.models import Job, Status
from tests.jobs.auditing import recorded_audit
from tests.jobs.factories import AttemptFactory, JobFactory, WorkerProcessFactory, ago

pytestmark = pytest.mark.django_db


def called(*arguments: object) -> str:
    stdout = io.StringIO()
    call_command("jobs", *map(str, arguments), stdout=stdout)
    return stdout.getvalue()


def listed(*arguments: object) -> list[str]:
    return [row["id"] for row in json.loads(called("list", "--json", *arguments))]


def test_list_prints_the_newest_first():
    first, second = JobFactory(), JobFactory(dead=True, last_error="a\nb")
    lines = called("list").splitlines()
    assert lines[0].startswith("ID")
    assert lines[1].startswith(str(second.pk))
    assert lines[1].endswith("a")
    assert lines[2].startswith(str(first.pk))


def test_list_without_jobs_says_so():
    assert called("list") == "no jobs\n"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--status", "dead"], {"dead"}),
        (["--status", "dead", "--status", "cancelled"], {"dead", "cancelled"}),
        (["--type", "test.x"], {"typed"}),
        (["--queue", "mail"], {"queued"}),
        (["--ref-id", "task-1"], {"about"}),
        (["--limit", "2"], {"about", "queued"}),
    ],
)
def test_list_filters(arguments: list[str], wanted: set[str]):
    jobs = {
        "dead": JobFactory(dead=True),
        "cancelled": JobFactory(cancelled=True),
        "typed": JobFactory(type="test.x"),
        "queued": JobFactory(queue="mail"),
        "about": JobFactory(ref_id="task-1"),
    }
    assert set(listed(*arguments)) == {str(jobs[name].pk) for name in wanted}


def test_show_prints_all_that_is_known():
    job = JobFactory(dead=True, payload={"a": {"token": "s3cret"}}, ref_id="task-1")
    AttemptFactory(job=job, number=1, traceback="Traceback: first")
    AttemptFactory(job=job, number=2, traceback="Traceback: second\n  in line 2")
    text = called("show", job.pk)
    assert "task-1" in text
    assert "ValueError: broken" in text
    assert "  Traceback: second\n    in line 2\n" in text
    assert "Traceback: first" not in text
    assert '"token": "***"' in text
    assert "s3cret" not in text


def test_show_as_json():
    job = JobFactory(dead=True, payload={"a": 1})
    AttemptFactory(job=job, number=1)
    shown = json.loads(called("show", job.pk, "--json"))
    assert (shown["id"], shown["payload"]) == (str(job.pk), {"a": 1})
    assert shown["failed_attempts"][0]["error"] == "ValueError: broken"


def test_show_of_a_job_that_does_not_exist_is_exit_status_1():
    missing = uuid7()
    with pytest.raises(CommandError, match=f"there is no job {missing}"):
        called("show", missing)


def test_retry_by_id(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOGNAME", "carol")
    first, second = JobFactory(dead=True), JobFactory(cancelled=True)
    with recorded_audit() as told:
        assert called("retry", first.pk, second.pk) == "2 retried\n"
    assert {audit["actor"] for audit in told} == {"command line (carol)"}
    assert Job.objects.pending().count() == 2


def test_retry_of_some_that_are_skipped_is_done():
    dead, running = JobFactory(dead=True), JobFactory(running=True)
    assert "1 retried, 1 skipped" in called("retry", dead.pk, running.pk)


def test_retry_of_nothing_but_skipped_ones_is_exit_status_1():
    with pytest.raises(CommandError) as raised:
        called("retry", JobFactory(running=True).pk)
    assert "0 retried, 1 skipped" in str(raised.value)
    assert raised.value.returncode == 1


def test_retry_of_one_that_does_not_exist_is_exit_status_1_and_does_the_rest():
    job = JobFactory(dead=True)
    with pytest.raises(CommandError, match="1 retried, 1 skipped: no such job"):
        called("retry", job.pk, uuid7())
    job.refresh_from_db()
    assert job.status == Status.PENDING


def test_retry_all_takes_the_dead_jobs_that_match():
    wanted = JobFactory(dead=True, type="test.x", queue="q", last_error="OSError: full")
    JobFactory(dead=True, type="test.x", queue="q", last_error="KeyError: 'x'")
    JobFactory(dead=True, type="test.x", queue="r", last_error="OSError: full")
    JobFactory(dead=True, type="test.y", queue="q", last_error="OSError: full")
    JobFactory(cancelled=True, type="test.x", queue="q", last_error="OSError: full")
    text = called(
        "retry", "--all", "--type", "test.x", "--queue", "q", "--error-contains", "full"
    )
    assert text == "1 retried\n"
    assert [job.pk for job in Job.objects.pending()] == [wanted.pk]


def test_retry_all_of_nothing_is_done():
    assert called("retry", "--all", "--type", "test.x") == "0 retried\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name jobs by ID, or --all"),
        (["--all"], "--all needs --type"),
        (["--all", "--type", "x", str(uuid7())], "name jobs by ID, or --all"),
        ([str(uuid7()), "--type", "x"], "go with --all"),
    ],
    ids=["nothing", "no type", "ids and all", "ids and type"],
)
def test_a_wrong_call_of_retry_is_exit_status_2(arguments: list[str], said: str):
    with pytest.raises(CommandError, match=said) as raised:
        called("retry", *arguments)
    assert raised.value.returncode == 2


def test_cancel():
    job = JobFactory()
    assert called("cancel", job.pk) == "1 cancelled\n"
    job.refresh_from_db()
    assert job.status == Status.CANCELLED


def test_cancel_of_a_running_job_asks_it_to_stop_and_is_done():
    pending, running = JobFactory(), JobFactory(running=True)
    said = "asked to stop: it is running on worker-1\n"
    assert called("cancel", pending.pk, running.pk) == f"1 cancelled, 1 {said}"
    running.refresh_from_db()
    assert running.status == Status.RUNNING
    assert called("cancel", running.pk).startswith("1 asked to stop already, at ")


def test_cancel_of_what_has_ended_is_exit_status_1():
    job = JobFactory(completed=True)
    with pytest.raises(CommandError, match="0 cancelled, 1 skipped") as raised:
        called("cancel", job.pk)
    assert raised.value.returncode == 1


def test_what_was_asked_to_stop_shows_it():
    job = JobFactory(running=True, cancel_requested_at=ago(minutes=1))
    assert "running, asked to stop" in called("list")
    assert json.loads(called("list", "--json"))[0]["status"] == "running"
    shown = json.loads(called("show", job.pk, "--json"))
    assert shown["cancel_requested_at"] is not None


def test_run_now():
    job = JobFactory(later=True)
    assert called("run-now", job.pk) == "1 made due now\n"
    assert Job.objects.due().filter(pk=job.pk).exists()


@pytest.mark.parametrize("verb", ["show", "retry", "cancel", "run-now"])
def test_an_id_that_is_none_is_a_wrong_call(verb: str):
    with pytest.raises(CommandError, match="a job's ID is a UUID, got 'seven'"):
        called(verb, "seven")


@pytest.mark.parametrize("limit", ["0", "-1", "many"])
def test_a_limit_is_a_number_above_zero(limit: str):
    with pytest.raises(CommandError, match="must be a whole number from 1 on"):
        called("list", f"--limit={limit}")


def test_stats_prints_how_the_queue_is_doing():
    JobFactory(run_at=ago(minutes=3))
    JobFactory(dead=True, last_error="OSError: full")
    WorkerProcessFactory(name="w1")
    text = called("stats")
    assert "Lag: the oldest due job has waited 3m" in text
    assert "pending       1\n" in text
    assert "OSError: full" in text
    assert "w1      alive        2" in text


def test_stats_of_an_empty_queue():
    assert called("stats").splitlines()[-5:] == [
        "no queue has live jobs",
        "",
        "no dead jobs",
        "",
        "no workers",
    ]


def test_stats_as_json():
    JobFactory(run_at=ago(minutes=3))
    WorkerProcessFactory(name="w1")
    figures: dict[str, Any] = json.loads(called("stats", "--json"))
    assert 180 <= figures["lag"] < 240
    assert figures["jobs"]["pending"] == 1
    assert figures["queues"][0]["queue"] == "default"
    assert figures["workers"][0]["state"] == "alive"
