"""A rolling deploy: workers of two versions share one database, and only the newer one knows the new type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.acceptance.ledger import RECORDING, Ledger
from tests.acceptance.product import Product, await_true

Install = Callable[..., Product]

OLDER = {"DJANGO_SETTINGS_MODULE": "tests.acceptance.settings"}
"""Without ``test.record``, with ``test.append``, which the newer version has no more."""


def old_job(product: Product, tmp_path: Path) -> str:
    """One of a type that only the older version has."""
    path = tmp_path / "appended"
    older = Product(product.url, tmp_path, {**product.settings, **OLDER})
    return older.enqueue("test.append", {"ledger": str(path), "line": "done"})


def test_each_version_does_what_it_knows_and_leaves_the_rest(
    install: Install, ledger: Ledger, tmp_path: Path
) -> None:
    product = install(**RECORDING)
    older = product.worker(**OLDER)
    new = ledger.enqueue(product, *[{}] * 50)
    # The older worker goes on beside jobs that it does not know, though they were there first.
    known = old_job(product, tmp_path)
    product.await_sql("SELECT FROM jobs WHERE id = %s AND status = 'completed'", known)
    assert product.sql(
        "SELECT status, attempts, count(*) FROM jobs WHERE type = 'test.record' GROUP BY 1, 2"
    ) == [("pending", 0, 50)]
    told = product.manage("doctor")
    assert (
        "50 jobs of type test.record are due, and no live worker has a handler" in told
    )

    newer = product.worker()
    ledger.await_completed(product, new)
    known = old_job(product, tmp_path)
    product.await_sql("SELECT FROM jobs WHERE id = %s AND status = 'completed'", known)
    assert {entry.pid for entry in ledger.entries()} == {newer.pid}
    assert product.sql(
        "SELECT attempts, lease_seq, count(*) FROM jobs WHERE type LIKE 'test.%%' GROUP BY 1, 2"
    ) == [(1, 1, 52)]
    assert older.popen.poll() is None
    assert "no live worker has a handler" not in product.manage("doctor")
    assert older.events("job.fail_retry") == []


def test_a_type_that_nobody_knows_fails_aloud_after_its_grace_and_is_named(
    install: Install, ledger: Ledger
) -> None:
    product = install(**RECORDING, JOBS_UNKNOWN_TYPE_GRACE="0s")
    (job_id,) = ledger.enqueue(product, {})
    worker = product.worker(**OLDER)
    assert "1 jobs of type test.record are due" in product.manage("doctor", status=1)
    await_true(
        lambda: worker.events("job.fail_retry"),
        "it fails aloud",
        evidence=product.evidence,
    )
    ((error,),) = product.sql("SELECT last_error FROM jobs WHERE id = %s", job_id)
    assert error == f"Unhandled job kind: test.record, id: {job_id}"
