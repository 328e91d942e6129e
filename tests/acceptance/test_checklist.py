"""The seven items of the operator's checklist, by hand no more."""

from __future__ import annotations

import datetime as dt
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.product import Product
from tests.acceptance.remote import Remote

Install = Callable[..., Product]

QUICK = {
    "JOBS_POLL_INTERVAL": "200ms",
    "JOBS_WORKSPACE_FETCH_INTERVAL": "500ms",
    "JOBS_WORKTREE_PRUNE_INTERVAL": "500ms",
    "JOBS_JOB_PURGE_INTERVAL": "500ms",
    "JOBS_JOB_REAPER_INTERVAL": "500ms",
}
NOTIFIED = (
    "SELECT username FROM notifications JOIN auth_user ON auth_user.id = user_id "
    "WHERE topic = %s ORDER BY username"
)


def a_broken_workspace(product: Product, remote: Remote) -> None:
    product.manage("workspace", "add", "demo", remote.url)
    remote.vanish()


def test_1_webhook_off_a_failed_fetch_is_told_in_the_inbox_and_no_job_is_made(
    install: Install, remote: Remote
) -> None:
    product = install(**QUICK, NOTIFY_WEBHOOK_ENABLED="false")
    product.add_admin("ada")
    a_broken_workspace(product, remote)
    product.worker()
    assert product.await_sql(NOTIFIED, "workspace.sync_failed") == [("ada",)]
    assert product.sql("SELECT count(*) FROM jobs WHERE type='webhook.deliver'") == [
        (0,)
    ]


def test_2_webhook_on_and_unreachable_is_retried_five_times_then_dead_and_told_to_every_admin(
    install: Install, remote: Remote
) -> None:
    product = install(
        **QUICK,
        NOTIFY_WEBHOOK_ENABLED="true",
        NOTIFY_WEBHOOK_URL="http://localhost:1/hook",
        NOTIFY_WEBHOOK_SECRET="an-acceptance-secret-0123456789",
        NOTIFY_WEBHOOK_TOPICS="workspace.sync_failed,worktree.prune_pending",
        JOBS_BACKOFF_BASE="20ms",
    )
    product.manage("migrate")
    product.add_admin("ada")
    product.add_admin("bob")
    a_broken_workspace(product, remote)
    worker = product.worker()
    product.await_sql("SELECT FROM jobs WHERE type='webhook.deliver' AND status='dead'")
    retries = [
        e for e in worker.events("job.fail_retry") if e["type"] == "webhook.deliver"
    ]
    assert [event["attempt"] for event in retries] == [1, 2, 3, 4, 5]
    assert product.sql(
        "SELECT status, attempts FROM jobs WHERE type='webhook.deliver'"
    ) == [("dead", 6)]
    assert product.sql(NOTIFIED, "webhook.dead_letter") == [("ada",), ("bob",)]
    assert (
        len(
            product.sql(
                "SELECT FROM audit_entries WHERE action = 'webhook.dead_letter'"
            )
        )
        == 1
    )


@pytest.fixture
def pruning(install: Install, remote: Remote) -> tuple[Product, int, Path]:
    """A product with one released worktree, its id and its path."""
    product = install(**QUICK)
    product.add_admin("ada")
    product.manage("workspace", "add", "demo", remote.url)
    printed = product.manage("worktree", "acquire", "demo", "--holder", "agent")
    worktree_id, path = printed.split()
    product.manage("worktree", "release", worktree_id)
    return product, int(worktree_id), Path(path)


def make_idle(product: Product, worktree_id: int, days: int) -> None:
    product.sql(
        f"UPDATE workspace_worktrees SET last_used_at = now() - INTERVAL '{days} days' WHERE id = %s",
        worktree_id,
    )


WARNED = (
    "SELECT FROM workspace_worktrees WHERE id = %s AND prune_warning_at IS NOT NULL"
)


def test_3_an_idle_worktree_is_warned_about(pruning: tuple[Product, int, Path]) -> None:
    product, worktree_id, path = pruning
    product.worker()
    make_idle(product, worktree_id, 28)
    product.await_sql(WARNED, worktree_id)
    assert product.sql(NOTIFIED, "worktree.prune_pending") == [("ada",)]
    assert path.is_dir()


def test_4_using_it_takes_the_warning_back(pruning: tuple[Product, int, Path]) -> None:
    product, worktree_id, path = pruning
    make_idle(product, worktree_id, 28)
    product.manage("runners", "run", "worktree_prune")
    assert product.sql(WARNED, worktree_id)
    before = product.sql("SELECT now()")[0][0]
    printed = product.manage("worktree", "acquire", "demo", "--holder", "agent")
    assert printed.split() == [str(worktree_id), str(path)]
    product.manage("worktree", "release", str(worktree_id))
    ((warned, used),) = product.sql(
        "SELECT prune_warning_at, last_used_at FROM workspace_worktrees WHERE id = %s",
        worktree_id,
    )
    assert warned is None
    assert before < used < before + dt.timedelta(minutes=5)


def test_5_past_the_threshold_directory_and_row_are_gone(
    pruning: tuple[Product, int, Path],
) -> None:
    product, worktree_id, path = pruning
    product.worker()
    make_idle(product, worktree_id, 31)
    product.await_sql(
        "SELECT WHERE NOT EXISTS (SELECT FROM workspace_worktrees WHERE id = %s)",
        worktree_id,
    )
    assert not path.exists()


def test_6_after_kill_9_nothing_stays_running(install: Install, tmp_path: Path) -> None:
    product = install(
        **QUICK,
        JOBS_JOB_REAPER_LEASE_TIMEOUT="2s",
        JOBS_BACKOFF_BASE="1h",
        JOBS_WORKERS="1",
    )
    worker = product.worker()
    payload = {"ledger": str(tmp_path / "ledger"), "until": str(tmp_path / "never")}
    job_id = product.enqueue("test.hold", payload)
    product.await_sql("SELECT FROM jobs WHERE id = %s AND status = 'running'", job_id)
    worker.send(signal.SIGKILL)
    worker.wait()
    assert product.sql("SELECT status FROM jobs WHERE id = %s", job_id) == [
        ("running",)
    ]
    product.worker()
    product.await_sql(
        "SELECT WHERE NOT EXISTS (SELECT FROM jobs WHERE status = 'running')"
    )
    assert product.sql("SELECT status, attempts FROM jobs WHERE id = %s", job_id) == [
        ("pending", 1)
    ]


def test_7_a_row_past_its_retention_is_purged(install: Install, tmp_path: Path) -> None:
    product = install(**QUICK)
    product.worker()
    payload = {"ledger": str(tmp_path / "ledger"), "line": "done"}
    job_id = product.enqueue("test.append", payload)
    product.await_sql("SELECT FROM jobs WHERE id = %s AND status = 'completed'", job_id)
    product.sql(
        "UPDATE jobs SET completed_at = now() - INTERVAL '8 days' WHERE id = %s", job_id
    )
    product.await_sql(
        "SELECT WHERE NOT EXISTS (SELECT FROM jobs WHERE id = %s)", job_id
    )
