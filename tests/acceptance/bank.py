"""Accounts, and the jobs that book amounts to them: what must come out is known beforehand."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import psycopg

from tests.acceptance.product import Product

BANKED = {
    "DJANGO_SETTINGS_MODULE": "tests.acceptance.banked.settings",
    "JOBS_POLL_INTERVAL": "100ms",
    "JOBS_JOB_REAPER_INTERVAL": "200ms",
    "JOBS_JOB_REAPER_LEASE_TIMEOUT": "2s",
    "JOBS_BACKOFF_BASE": "10ms",
    "JOBS_BACKOFF_MAX": "100ms",
}
"""Settings of a product with these jobs, whose leases run out soon."""

ACCOUNTS = 20

_TABLES = """
CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL DEFAULT 0);
CREATE TABLE bookings (job uuid NOT NULL, pid int NOT NULL);
CREATE INDEX ON bookings (pid);
CREATE TABLE orders (job uuid PRIMARY KEY, account int NOT NULL, amount int NOT NULL);
"""

_ORDER = """
WITH ordered AS (
    INSERT INTO orders
    SELECT gen_random_uuid(), mod((random() * 1000)::int, %(accounts)s), (random() * 1000)::int
    FROM generate_series(1, %(count)s)
    RETURNING *
)
INSERT INTO jobs (id, type, payload, max_attempts)
SELECT job, CASE WHEN mod(amount, 2) = 0 THEN 'test.book' ELSE 'test.book_gone' END,
    jsonb_build_object('account', account, 'amount', amount), 1000
FROM ordered
"""

# Each difference between what was ordered and what was booked.
_WRONG = """
SELECT 'orders not booked exactly once', count(*) FROM (
    SELECT FROM orders LEFT JOIN bookings USING (job) GROUP BY orders.job HAVING count(bookings.job) <> 1
) AS jobs
UNION ALL SELECT 'bookings that nobody ordered', count(*) FROM bookings WHERE job NOT IN (SELECT job FROM orders)
UNION ALL SELECT 'balances that do not come out', count(*) FROM accounts WHERE balance <> coalesce(
    (SELECT sum(amount) FROM orders WHERE account = accounts.id), 0)
UNION ALL SELECT 'jobs that are not completed', count(*) FROM jobs WHERE status <> 'completed'
UNION ALL SELECT 'jobs that were to be deleted', count(*) FROM jobs WHERE type = 'test.book_gone'
"""


class Bank:
    """A product's accounts, over one connection."""

    def __init__(self, product: Product) -> None:
        self._connection = psycopg.connect(product.url, autocommit=True)
        self._connection.execute(_TABLES)
        self._connection.execute(
            "INSERT INTO accounts (id) SELECT generate_series(0, %s)", [ACCOUNTS - 1]
        )

    def __enter__(self) -> Bank:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def order(self, count: int) -> None:
        """Have so many amounts booked, of which a half leaves no row of its job."""
        self._connection.execute(_ORDER, {"count": count, "accounts": ACCOUNTS})

    def open(self) -> int:
        """Jobs that are not completed."""
        return self._number("SELECT count(*) FROM jobs WHERE status <> 'completed'")

    def booked_by(self, pid: int) -> int:
        """Bookings that this process has committed."""
        return self._number("SELECT count(*) FROM bookings WHERE pid = %s", pid)

    def repeated(self) -> int:
        """Executions after the first, of the jobs that are kept."""
        return self._number("SELECT coalesce(sum(attempts - 1), 0) FROM jobs")

    def wrong(self) -> list[tuple[str, int]]:
        """What does not come out, and how often."""
        return [row for row in self._connection.execute(_WRONG) if row[1]]

    def _number(self, query: str, *parameters: Any) -> int:
        row = self._connection.execute(query, parameters or None).fetchone()
        assert row is not None
        return int(row[0])
