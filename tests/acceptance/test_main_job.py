"""The main job from end to end: what a new user sees in the first hour."""

from __future__ import annotations

import hashlib
import hmac
import json
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from tests.acceptance.product import Process, Product, await_true
from tests.acceptance.receiver import Received, Receiver
from tests.acceptance.remote import Remote, git

Install = Callable[..., Product]

SECRET = "an-acceptance-secret-0123456789"
QUICK = {
    "JOBS_POLL_INTERVAL": "200ms",
    "JOBS_WORKSPACE_FETCH_INTERVAL": "500ms",
    "JOBS_BACKOFF_BASE": "20ms",
    "NOTIFY_WEBHOOK_ENABLED": "true",
}


def fetch_ticks(worker: Process) -> list[dict[str, object]]:
    return [
        tick
        for tick in worker.events("runner.completed")
        if tick["runner"] == "workspace_fetch"
    ]


def add_endpoint(product: Product, receiver: Receiver, topics: str) -> None:
    product.manage(
        "webhook",
        "add",
        "mine",
        receiver.url,
        "--topics",
        topics,
        "--secret-stdin",
        stdin=SECRET,
    )


def verified(received: Received) -> dict[str, object]:
    """The body, after the check that the contract asks of a receiver."""
    stamp = received.headers["X-ACW-Timestamp"]
    assert abs(time.time() - int(stamp)) <= 300
    mac = hmac.new(
        SECRET.encode(), f"{stamp}.".encode() + received.body, hashlib.sha256
    )
    assert hmac.compare_digest(
        f"sha256={mac.hexdigest()}", received.headers["X-ACW-Signature"]
    )
    assert received.headers["Content-Type"] == "application/json"
    body: dict[str, object] = json.loads(received.body)
    assert body["topic"] == received.headers["X-ACW-Topic"]
    return body


def test_a_pushed_commit_arrives_with_the_next_fetch(
    install: Install, remote: Remote
) -> None:
    product = install(**QUICK)
    product.manage("workspace", "add", "demo", remote.url)
    product.worker()
    pushed = remote.commit("second")
    ((path,),) = product.sql("SELECT path FROM workspaces")

    def arrived() -> bool:
        return (
            git("-C", path, "rev-parse", "refs/remotes/origin/main").strip() == pushed
        )

    await_true(arrived, "the commit arrived", evidence=product.evidence)


def test_a_failing_and_a_recovering_workspace_are_each_told_once_and_signed(
    install: Install, remote: Remote, receiver: Receiver
) -> None:
    product = install(**QUICK)
    product.add_admin("ada")
    add_endpoint(product, receiver, "workspace.sync_failed,workspace.sync_recovered")
    product.manage("workspace", "add", "demo", remote.url)
    remote.vanish()
    worker = product.worker()
    worker.await_events("workspace.fetch_failed", 1)
    # It is looked at in each of these, and nothing is told again.
    ticks = len(fetch_ticks(worker))
    await_true(
        lambda: len(fetch_ticks(worker)) >= ticks + 3,
        "three more ticks",
        evidence=product.evidence,
    )
    remote.come_back()
    await_true(
        lambda: len(receiver.received) == 2, "both events", evidence=product.evidence
    )
    assert [verified(received)["topic"] for received in receiver.received] == [
        "workspace.sync_failed",
        "workspace.sync_recovered",
    ]
    ids = {received.headers["X-ACW-Event-Id"] for received in receiver.received}
    assert ids == {
        str(job_id)
        for (job_id,) in product.sql(
            "SELECT id FROM jobs WHERE type = 'webhook.deliver'"
        )
    }
    told = product.sql("SELECT topic FROM notifications ORDER BY id")
    assert told == [("workspace.sync_failed",), ("workspace.sync_recovered",)]


@pytest.mark.browser
def test_a_dead_delivery_is_retried_in_the_admin_once_the_receiver_is_well(
    install: Install, remote: Remote, receiver: Receiver, browser: webdriver.Chrome
) -> None:
    product = install(**QUICK)
    product.add_admin("ada")
    add_endpoint(product, receiver, "workspace.sync_failed")
    product.manage("workspace", "add", "demo", remote.url)
    remote.vanish()
    receiver.status = 500
    product.worker()
    ((job_id,),) = product.await_sql("SELECT id FROM jobs WHERE status = 'dead'")
    assert product.sql(
        "SELECT count(*) FROM notifications WHERE topic = 'webhook.dead_letter'"
    ) == [(1,)]
    assert len(receiver.received) == 6

    receiver.status = 204
    port = _free_port()
    site = f"http://127.0.0.1:{port}"
    product.start("runserver", "--noreload", f"127.0.0.1:{port}")
    await_true(lambda: _answers(port), "the site answers", evidence=product.evidence)
    browser.get(f"{site}/admin/login/?next=/admin/jobs/job/{job_id}/change/")
    browser.find_element(By.NAME, "username").send_keys("ada")
    browser.find_element(By.NAME, "password").send_keys("not-guessed-1")
    browser.find_element(By.CSS_SELECTOR, "[type=submit]").click()
    browser.find_element(By.XPATH, "//button[normalize-space()='Retry']").click()

    product.await_sql("SELECT FROM jobs WHERE id = %s AND status = 'completed'", job_id)
    assert verified(receiver.received[-1])["topic"] == "workspace.sync_failed"
    assert {r.headers["X-ACW-Event-Id"] for r in receiver.received} == {str(job_id)}
    assert product.sql(
        "SELECT actor, target FROM audit_entries WHERE action = 'job.retry'"
    ) == [("ada", f"job:{job_id}")]


def test_kill_9_of_the_worker_loses_nothing(install: Install, tmp_path: Path) -> None:
    """Whatever it was doing: after its leases have run out, the next worker does the rest."""
    product = install(
        JOBS_POLL_INTERVAL="100ms",
        JOBS_JOB_REAPER_LEASE_TIMEOUT="2s",
        JOBS_JOB_REAPER_INTERVAL="200ms",
        JOBS_BACKOFF_BASE="10ms",
    )
    ledger = tmp_path / "ledger"
    ledger.touch()
    code = (
        "from jobs.enqueue import NewJob, enqueue_many\n"
        "enqueue_many([NewJob(type='test.append', payload="
        f"{{'ledger': {str(ledger)!r}, 'line': str(n)}}) for n in range(3000)])"
    )
    product.manage("shell", "--no-imports", "-c", code)
    first = product.worker()
    await_true(
        lambda: len(ledger.read_text().splitlines()) > 300,
        "it is at work",
        evidence=first.text,
    )
    first.send(signal.SIGKILL)
    first.wait()
    product.worker()
    product.await_sql(
        "SELECT WHERE 3000 = (SELECT count(*) FROM jobs "
        "WHERE type = 'test.append' AND status = 'completed')"
    )
    assert set(map(int, ledger.read_text().split())) == set(range(3000))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
