"""Cancelling what runs, by the command and with real workers: heard at once, and where nothing is heard, with the next heartbeat."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.product import Product, await_true

Install = Callable[..., Product]

ONE_THREAD = {"JOBS_WORKERS": "1", "JOBS_POLL_INTERVAL": "200ms"}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger"
    path.touch()
    return path


def hold(product: Product, ledger: Path, type_name: str = "test.unwanted") -> str:
    """A job whose handler waits to be stopped, once it does."""
    job_id = product.enqueue(type_name, {"ledger": str(ledger)})
    await_true(ledger.read_text, "the handler began", evidence=product.evidence)
    return job_id


def ended(product: Product, job_id: str) -> tuple[str, str]:
    ((status, error),) = product.await_sql(
        "SELECT status, last_error FROM jobs WHERE id = %s AND completed_at IS NOT NULL",
        job_id,
    )
    return status, error


_CANCEL_AND_TELL_NOBODY = """
import uuid
from jobs import actions, wakeup
wakeup.cancel = lambda leases: None
print(actions.cancel([uuid.UUID(%r)], actor="test"))
"""


def test_a_running_job_is_cancelled_long_before_a_heartbeat(
    install: Install, ledger: Path
) -> None:
    product = install(
        **ONE_THREAD, JOBS_JOB_REAPER_LEASE_TIMEOUT="1h", ACCEPTANCE_RARE_BEATS="1"
    )
    worker = product.worker()
    job_id = hold(product, ledger)
    said = product.manage("jobs", "cancel", job_id)
    ((name,),) = product.sql("SELECT name FROM job_workers")
    assert said == f"1 asked to stop: it is running on {name}\n"
    status, error = ended(product, job_id)
    assert status == "cancelled"
    assert error == (
        "cancelled by an operator while it ran: Cancelled: stopped in attempt 1, as it"
        " was asked to"
    )
    assert ledger.read_text().splitlines() == ["begun", "asked to stop"]
    (event,) = worker.await_events("job.cancelled", 1)
    assert event["job_id"] == job_id
    attempts = product.sql("SELECT number FROM job_attempts WHERE job_id = %s", job_id)
    assert attempts == [(1,)]


def test_where_no_notification_arrives_the_heartbeat_brings_it(
    install: Install, ledger: Path
) -> None:
    product = install(**ONE_THREAD, JOBS_JOB_REAPER_LEASE_TIMEOUT="3s")
    worker = product.worker()
    job_id = hold(product, ledger)
    code = _CANCEL_AND_TELL_NOBODY % job_id
    assert "asked to stop" in product.manage("shell", "--no-imports", "-c", code)
    assert ended(product, job_id)[0] == "cancelled"
    assert ledger.read_text().splitlines() == ["begun", "asked to stop"]
    assert worker.popen.poll() is None


def test_a_handler_that_completes_all_the_same_has_completed(
    install: Install, ledger: Path
) -> None:
    product = install(**ONE_THREAD)
    worker = product.worker()
    job_id = hold(product, ledger, "test.stubborn")
    product.manage("jobs", "cancel", job_id)
    assert ended(product, job_id) == ("completed", "")
    assert worker.events("job.cancelled") == []
    # What it was asked is known, though it came too late.
    shown = json.loads(product.manage("jobs", "show", job_id, "--json"))
    assert shown["cancel_requested_at"] is not None


def test_what_waits_behind_a_running_handler_is_cancelled_without_being_run(
    install: Install, ledger: Path
) -> None:
    product = install(**ONE_THREAD)
    product.worker()
    holding = hold(product, ledger)
    behind = product.enqueue("test.unwanted", {"ledger": str(ledger)})
    assert product.manage("jobs", "cancel", behind) == "1 cancelled\n"
    assert ended(product, behind)[0] == "cancelled"
    product.manage("jobs", "cancel", holding)
    assert ended(product, holding)[0] == "cancelled"
    assert ledger.read_text().splitlines() == ["begun", "asked to stop"]


def test_a_cancelled_job_can_be_retried_and_runs_again(
    install: Install, ledger: Path
) -> None:
    product = install(**ONE_THREAD)
    product.worker()
    job_id = hold(product, ledger)
    product.manage("jobs", "cancel", job_id)
    assert ended(product, job_id)[0] == "cancelled"
    assert product.manage("jobs", "retry", job_id) == "1 retried\n"
    await_true(
        lambda: ledger.read_text().splitlines()[2:] == ["begun"],
        "it runs again, and nobody asks it to stop",
        evidence=product.evidence,
    )
    product.manage("jobs", "cancel", job_id)
    assert ended(product, job_id)[0] == "cancelled"


def test_a_worker_that_is_killed_leaves_a_job_that_is_not_tried_again(
    install: Install, ledger: Path
) -> None:
    product = install(
        **ONE_THREAD,
        JOBS_JOB_REAPER_LEASE_TIMEOUT="2s",
        JOBS_JOB_REAPER_INTERVAL="1s",
    )
    worker = product.worker()
    job_id = hold(product, ledger, "test.unreachable")
    product.manage("jobs", "cancel", job_id)
    worker.kill()
    product.worker()
    status, error = ended(product, job_id)
    assert status == "cancelled"
    assert error.startswith("cancelled by an operator while it ran: ")
    assert ledger.read_text().splitlines() == ["begun"]
