"""Whether the database is there, is the right one, and agrees with this host."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

from django.core import checks
from django.db import Error, connection

from jobs.display import duration, first_line
from jobs.doctor import Finding, error, ok, probe, warning
from jobs.outcomes import describe
from jobs.schema import unapplied_migrations

OLDEST_VERSION = 15
LARGEST_SKEW = dt.timedelta(seconds=5)


@probe("database", vital=True)
def database() -> Iterator[Finding]:
    """It answers, is recent enough and takes writes."""
    try:
        connection.ensure_connection()
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('server_version_num')::int, current_setting('server_version'),"
                " current_database(), pg_is_in_recovery(), current_setting('transaction_read_only')"
            )
            number, version, name, standby, read_only = cursor.fetchone()
    except Error as failure:
        yield error(
            f"the database does not answer: {first_line(describe(failure), 300)}",
            advice="Start it, or correct DATABASE_URL; workers wait for it and go on by themselves.",
        )
        return
    if number < OLDEST_VERSION * 10_000:
        yield error(
            f"PostgreSQL {version}: ACW needs {OLDEST_VERSION} or newer",
            advice="Upgrade the server.",
        )
    elif standby or read_only == "on":
        yield error(
            f"PostgreSQL {version}, database {name}: {'a standby' if standby else 'read-only'}, takes no writes",
            advice="Let DATABASE_URL name every server and ask for target_session_attrs=read-write; "
            "or end default_transaction_read_only.",
        )
    else:
        yield ok(f"PostgreSQL {version}, database {name}, read-write")


@probe("migrations", vital=True)
def migrations() -> Iterator[Finding]:
    """The tables are those that this code expects."""
    missing = unapplied_migrations()
    if missing:
        shown = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        yield error(
            f"{len(missing)} migrations are not applied: {shown}",
            advice="Run manage.py migrate; until then no worker starts.",
        )
    else:
        yield ok("all are applied")


@probe("settings")
def settings() -> Iterator[Finding]:
    """Django's system checks, ours among them."""
    found = [message for message in checks.run_checks() if not message.is_silenced()]
    for message in found:
        make = error if message.is_serious() else warning
        yield make(f"{message.id}: {message.msg}", advice=message.hint or "")
    if not found:
        yield ok("the system checks find nothing")


@probe("clock")
def clock() -> Iterator[Finding]:
    """This host's clock against the database's, by which everything is scheduled."""
    yield compare_clocks(lambda: dt.datetime.now(dt.UTC))


def compare_clocks(host_now: Callable[[], dt.datetime]) -> Finding:
    """The finding for a host whose clock is ``host_now``."""
    with connection.cursor() as cursor:
        before = host_now()
        cursor.execute("SELECT clock_timestamp()")
        (database_now,) = cursor.fetchone()
        after = host_now()
    # Halfway, since the answer takes about as long as the question.
    skew = before + (after - before) / 2 - database_now
    if abs(skew) <= LARGEST_SKEW:
        return ok("this host and the database agree on the time")
    which = "ahead of" if skew > dt.timedelta(0) else "behind"
    return warning(
        f"this host's clock is {duration(abs(skew))} {which} the database's",
        advice="Jobs are not affected, since the database's clock decides; receivers refuse webhooks whose "
        "timestamp is off. Run NTP on both hosts.",
    )
