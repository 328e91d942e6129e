from __future__ import annotations

import datetime as dt
import logging

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from tests.workspaces.conftest import Told, database_time
from tests.workspaces.factories import AdminFactory, WorkspaceFactory
from workspaces.failures import Failure
from workspaces.fetching import fetch_outcomes
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db

INTERVAL = dt.timedelta(minutes=5)


@pytest.fixture(autouse=True)
def settled(settings: Settings) -> None:
    settings.JOBS_WORKSPACE_FETCH_INTERVAL = INTERVAL
    settings.ACW_FETCH_BACKOFF_MAX = dt.timedelta(hours=1)


@pytest.fixture
def row() -> Workspace:
    AdminFactory()
    workspace: Workspace = WorkspaceFactory(last_fetched_at=Now())
    workspace.refresh_from_db()
    return workspace


def fail(row: Workspace, *failures: Failure, error: str = "it failed") -> None:
    for failure in failures:
        fetch_outcomes.record_failure(row, failure=failure, error=error)
    row.refresh_from_db()


def succeed(row: Workspace, *, default_branch: str = "main") -> None:
    fetch_outcomes.record_success(
        row, default_branch=default_branch, changed=0, next_in=INTERVAL
    )
    row.refresh_from_db()


def waits(row: Workspace) -> dt.timedelta:
    """Until the next try, from now on."""
    return row.next_fetch_at - database_time()


def test_a_failure_says_of_which_kind_how_often_since_when_and_when_next(
    row: Workspace,
):
    fail(row, Failure.NETWORK)
    since = row.failing_since
    assert since is not None
    assert (row.fetch_problem, row.fetch_failures) == ("network", 1)
    assert row.last_fetch_error == "it failed"
    assert dt.timedelta(minutes=4) < waits(row) < dt.timedelta(minutes=6)
    fail(row, Failure.TIMEOUT, Failure.NETWORK)
    assert row.failing_since == since
    assert row.fetch_failures == 3
    assert dt.timedelta(minutes=17) < waits(row) < dt.timedelta(minutes=23)
    fail(row, *[Failure.NETWORK] * 9)
    assert dt.timedelta(minutes=53) < waits(row) < dt.timedelta(minutes=67)


@pytest.mark.parametrize(
    ("failures", "told_of"),
    [
        pytest.param([Failure.AUTH] * 3, ["auth"], id="a refusal at once"),
        pytest.param([Failure.NETWORK], [], id="one outage not"),
        pytest.param([Failure.NETWORK] * 5, ["network"], id="a lasting outage once"),
        pytest.param(
            [Failure.NETWORK, Failure.TIMEOUT, Failure.NETWORK],
            ["timeout"],
            id="an outage that shows in two ways once",
        ),
        pytest.param([Failure.LOCK] * 2, [], id="a lock not"),
        pytest.param([Failure.LOCK] * 5, ["lock"], id="a lasting lock once"),
        pytest.param([Failure.DISK_FULL] * 3, ["disk_full"], id="a full disk at once"),
        pytest.param([Failure.CORRUPT] * 3, ["corrupt"], id="damage at once"),
        pytest.param([Failure.CONFIG_TAMPERED] * 3, [], id="what the seal tells not"),
        pytest.param(
            [Failure.NOT_FOUND, Failure.AUTH, Failure.AUTH],
            ["not_found", "auth"],
            id="another kind anew",
        ),
        pytest.param(
            [Failure.NETWORK, Failure.AUTH, Failure.NETWORK],
            ["auth"],
            id="and an outage in between not",
        ),
    ],
)
def test_each_problem_is_told_once_when_it_is_time(
    row: Workspace, told: Told, failures: list[Failure], told_of: list[str]
):
    fail(row, *failures)
    notifications = told("workspace.sync_failed")
    assert [n.data["class"] for n in notifications] == told_of
    assert (row.failure_told_at is not None) == bool(told_of)
    succeed(row)
    assert len(told("workspace.sync_recovered")) == bool(told_of)
    assert row.failing_since is None
    assert row.failure_told_at is None
    assert (row.fetch_problem, row.fetch_failures, row.remote_stamp) == ("", 0, "")


def test_problems_that_take_turns_are_told_once_a_day(row: Workspace, told: Told):
    fail(row, *[Failure.CORRUPT, Failure.NETWORK, Failure.DISK_FULL] * 3)
    assert [n.data["class"] for n in told("workspace.sync_failed")] == ["corrupt"]
    Workspace.objects.update(failure_told_at=Now() - dt.timedelta(days=1))
    fail(row, *[Failure.CORRUPT, Failure.NETWORK] * 3)
    assert len(told("workspace.sync_failed")) == 2
    # What waits for somebody is told whatever was told before.
    fail(row, Failure.AUTH)
    assert len(told("workspace.sync_failed")) == 3


def test_what_a_remote_did_that_is_another_by_now_is_not_recorded(
    row: Workspace, told: Told
):
    before = row.last_fetched_at
    for failing_since in (None, Now()):
        Workspace.objects.update(
            url="https://git.example/new", failing_since=failing_since
        )
        row.url = "https://git.example/old"
        assert fetch_outcomes.record_failure(row, failure=Failure.AUTH, error="x") == 0
        fetch_outcomes.record_success(
            row, default_branch="other", changed=0, next_in=INTERVAL
        )
        fetch_outcomes.record_success(
            row, default_branch=row.default_branch, changed=0, next_in=INTERVAL
        )
        row.refresh_from_db()
        assert (row.last_fetched_at, row.fetch_problem) == (before, "")
    assert told("workspace.sync_failed") == []


def test_what_is_told_says_all_that_is_known(row: Workspace, told: Told):
    fail(row, Failure.AUTH, error="x" * 600 + "the end")
    (notification,) = told("workspace.sync_failed")
    data = notification.data
    assert data["class"] == "auth"
    assert len(data["error"]) == 500
    assert data["error"].endswith("the end")
    assert row.failing_since is not None
    assert dt.datetime.fromisoformat(data["first_failed_at"]) == row.failing_since
    assert data["attempts"] == 1
    assert dt.datetime.fromisoformat(data["next_attempt_at"]) == row.next_fetch_at
    assert "host's keys or settings change" in notification.body


def test_recovery_and_a_new_failure_are_told_again(
    row: Workspace, told: Told, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    for _ in range(2):
        fail(row, Failure.NOT_FOUND)
        succeed(row)
        succeed(row)
    assert len(told("workspace.sync_failed")) == 2
    assert len(told("workspace.sync_recovered")) == 2
    assert caplog.messages.count("workspace.recovered") == 2
    assert caplog.messages.count("workspace.fetched") == 4


def test_only_a_refusal_has_a_stamp(row: Workspace):
    fail(row, Failure.AUTH)
    assert len(row.remote_stamp) == 64
    assert waits(row) > dt.timedelta(hours=21)
    fail(row, Failure.NETWORK)
    assert row.remote_stamp == ""


def test_a_default_branch_that_changes_is_told_once(row: Workspace, told: Told):
    succeed(row, default_branch="trunk")
    succeed(row, default_branch="trunk")
    (notification,) = told("workspace.default_branch_changed")
    assert "It was main." in notification.body
    assert row.default_branch == "trunk"
    succeed(row, default_branch="")
    gone = told("workspace.default_branch_changed")[-1]
    assert "No new branch can be begun" in gone.body
    succeed(row, default_branch="main")
    assert len(told("workspace.default_branch_changed")) == 2


def test_the_row_and_the_notification_are_written_together(
    row: Workspace, monkeypatch: pytest.MonkeyPatch
):
    def fail_to_tell(_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(fetch_outcomes, "dispatch", fail_to_tell)
    with pytest.raises(RuntimeError):
        fail(row, Failure.AUTH)
    row.refresh_from_db()
    assert row.failing_since is None


def test_one_that_is_gone_is_forgotten(row: Workspace, told: Told):
    Workspace.objects.all().delete()
    assert fetch_outcomes.record_failure(row, failure=Failure.AUTH, error="x") == 0
    fetch_outcomes.record_success(
        row, default_branch="other", changed=0, next_in=INTERVAL
    )
    assert told("workspace.sync_failed") == []
