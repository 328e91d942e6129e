from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.test import RequestFactory

from jobs.admin import JobAdmin
from jobs.filters import (
    NameFilter,
    QueueFilter,
    StatusFilter,
    StopFilter,
    TypeFilter,
)
from jobs.models import Job
from tests.jobs.factories import JobFactory, WorkerProcessFactory

pytestmark = pytest.mark.django_db


def made(kind: type[NameFilter], value: str | None = None) -> tuple[NameFilter, Any]:
    parameters = {} if value is None else {str(kind.parameter_name): [value]}
    request = RequestFactory().get("/")
    model_admin = JobAdmin(Job, admin.site)
    chosen = kind(request, parameters, Job, model_admin)
    return chosen, chosen.queryset(request, Job.objects.order_by("pk"))


def names(chosen: NameFilter) -> list[str]:
    return [name for name, _ in chosen.lookup_choices]


def test_statuses_are_all_there_are():
    chosen, _ = made(StatusFilter)
    assert names(chosen) == ["pending", "running", "completed", "dead", "cancelled"]


@pytest.mark.parametrize(
    "status", ["pending", "running", "completed", "dead", "cancelled"]
)
def test_a_status_filters(status: str):
    JobFactory()
    for state in ("running", "completed", "dead", "cancelled"):
        JobFactory(**{state: True})
    _, jobs = made(StatusFilter, status)
    assert [job.status for job in jobs] == [status]


def test_a_finished_status_is_found_by_its_index():
    _, jobs = made(StatusFilter, "dead")
    assert '"completed_at" IS NOT NULL' in str(jobs.query)


def test_types_are_the_registered_ones_and_the_table_is_not_read(
    noop: str, django_assert_num_queries: Any
):
    with django_assert_num_queries(0):
        chosen, _ = made(TypeFilter)
    assert noop in names(chosen)


def test_a_type_from_a_link_filters_though_nobody_registered_it():
    job = JobFactory(type="test.gone")
    JobFactory(type="test.other")
    chosen, jobs = made(TypeFilter, "test.gone")
    assert "test.gone" in names(chosen)
    assert list(jobs) == [job]


def test_queues_are_those_of_types_and_of_workers(noop: str):
    WorkerProcessFactory(queues=["host:a", "default"])
    JobFactory(queue="not-served")
    chosen, _ = made(QueueFilter)
    assert {"default", "host:a"} <= set(names(chosen))
    assert "not-served" not in names(chosen)


def test_a_name_with_a_nul_character_matches_nothing():
    JobFactory()
    _, jobs = made(TypeFilter, "a\x00b")
    assert list(jobs) == []


def test_without_a_choice_nothing_is_filtered():
    job = JobFactory()
    _, jobs = made(TypeFilter)
    assert list(jobs) == [job]


def test_those_asked_to_stop_are_sought_among_the_running_ones():
    request = RequestFactory().get("/")
    chosen = StopFilter(request, {"stop": ["asked"]}, Job, JobAdmin(Job, admin.site))
    jobs = chosen.queryset(request, Job.objects.all())
    assert "'running'" in str(jobs.query) or "= running" in str(jobs.query)
    assert "cancel_requested_at" in str(jobs.query)


def test_no_cancellation_chosen_leaves_all_jobs():
    request = RequestFactory().get("/")
    chosen = StopFilter(request, {}, Job, JobAdmin(Job, admin.site))
    assert [name for name, _ in chosen.lookup_choices] == ["asked"]
    job = JobFactory()
    assert list(chosen.queryset(request, Job.objects.all())) == [job]
