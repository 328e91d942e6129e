from __future__ import annotations

import io

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs import reports
from jobs.models import Job
from tests.jobs.factories import AttemptFactory, JobFactory

pytestmark = pytest.mark.django_db


def test_a_list_reads_no_payload():
    JobFactory()
    with CaptureQueriesContext(connection) as queries:
        reports.print_jobs(io.StringIO(), Job.objects.all(), as_json=False)
    assert [query for query in queries if "payload" in query["sql"]] == []


@pytest.mark.parametrize("as_json", [True, False])
def test_a_payload_that_python_cannot_read_is_shown(as_json: bool):
    job = JobFactory()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs SET payload ="
            " ('{\"a\": ' || repeat('[', 9000) || repeat(']', 9000) || '}')::jsonb"
        )
    stdout = io.StringIO()
    assert reports.print_job(stdout, job.pk, as_json=as_json)
    assert "[[[[" in stdout.getvalue()


def test_the_newest_attempts_are_shown_in_order(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reports, "ATTEMPTS_SHOWN", 2)
    job = JobFactory(dead=True)
    for number in (1, 2, 3):
        AttemptFactory(job=job, number=number, error=f"error {number}")
    stdout = io.StringIO()
    reports.print_job(stdout, job.pk, as_json=False)
    text = stdout.getvalue()
    assert "error 1" not in text
    assert text.index("error 2") < text.index("error 3")


def test_what_others_wrote_cannot_move_the_cursor():
    job = JobFactory(dead=True, last_error="\x1b[2J", ref_id="\x1b[1A")
    AttemptFactory(job=job, traceback="\x1b[3J")
    stdout = io.StringIO()
    reports.print_job(stdout, job.pk, as_json=False)
    reports.print_jobs(stdout, Job.objects.all(), as_json=False)
    assert "\x1b" not in stdout.getvalue()


def test_a_job_that_does_not_exist_is_not_printed():
    stdout = io.StringIO()
    assert not reports.print_job(stdout, JobFactory.build().pk, as_json=False)
    assert stdout.getvalue() == ""
