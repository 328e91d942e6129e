"""An endpoint's places in flight: rows of attempts that hold a number, which no two of one endpoint can.

The numbers from 1 up are for an endpoint that is well, 0 is for the one delivery that tries a receiver that was not, and
those below 0 are the places of a window while it recovers. A unique index makes the limit exact, over all processes.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
import threading
from typing import Any

from django.conf import settings

from jobs import thread_connection
from jobs.riding import AFTER
from notify.models import WebhookAttempt, WebhookEndpoint
from notify.models.attempt import NOT_SENT
from notify.models.endpoint import IN_FLIGHT_DEFAULT

ROUNDS = 20
"""How often a place is looked for, where others take those that are found at the same moment."""

LOST_AFTER = dt.timedelta(seconds=15)
"""What an attempt may take beyond its timeout before its place is free again: its worker was killed."""

ENDPOINT_FIELDS = [
    "id",
    "name",
    "url",
    "enabled",
    "disabled_reason",
    "timeout",
    "max_in_flight",
    "encrypted_headers",
    "encrypted_secret",
    "staged_secret",
    "retiring_secret",
    "breaker",
    "breaker_until",
    "window",
]
"""What a delivery needs of its endpoint, in the order of the model's fields, in which Django takes the values."""

# Ordered, or the plan that is made for a small table, and kept, reads all attempts of the endpoint to find those.
_HELD = """
endpoint AS MATERIALIZED (
    SELECT {fields} FROM webhook_endpoints WHERE id = %(endpoint_id)s
), held AS MATERIALIZED (
    SELECT slot FROM webhook_attempts WHERE endpoint_id = %(endpoint_id)s AND slot IS NOT NULL ORDER BY slot
)
"""
_TAKE = """
opened AS (
    INSERT INTO webhook_attempts (endpoint_id, job_id, topic, number, slot, trial)
    SELECT %(endpoint_id)s, %(job_id)s, %(topic)s, %(number)s, slot, slot = 0 FROM place
    ON CONFLICT (endpoint_id, slot) WHERE slot IS NOT NULL DO NOTHING
    RETURNING id, trial
)
SELECT (SELECT id FROM opened), (SELECT trial FROM opened), (SELECT slot FROM place), endpoint.* FROM endpoint
"""
# The common case, in a statement that is quick to plan as well: this thread's favourite place is free, and no other is
# held that is beyond the limit or of a trial or a window.
_FAVOURITE = f"""
opened AS (
    INSERT INTO webhook_attempts (endpoint_id, job_id, topic, number, slot)
    SELECT id, %(job_id)s, %(topic)s, %(number)s, %(place)s FROM endpoint
    WHERE enabled AND breaker = 'closed' AND %(place)s <= max_in_flight AND NOT EXISTS (
        SELECT FROM held WHERE slot NOT BETWEEN 1 AND max_in_flight
    ) {AFTER}
    ON CONFLICT (endpoint_id, slot) WHERE slot IS NOT NULL DO NOTHING
    RETURNING id
)
SELECT opened.id, false, NULL, endpoint.* FROM endpoint LEFT JOIN opened ON true
"""  # noqa: S608 (nothing of a caller's)
# What a trial or a window still holds is within the limit, too.
_WELL = """
place AS (
    SELECT number AS slot
    FROM endpoint, generate_series(1, max_in_flight - (SELECT count(*) FROM held WHERE slot <= 0)) AS number
    WHERE enabled AND breaker = 'closed'
        AND (SELECT count(*) FROM held) < max_in_flight AND number NOT IN (SELECT slot FROM held)
    ORDER BY (number + %(hint)s) %% max_in_flight LIMIT 1
)
"""
_NOT_WELL = f"""
used AS (
    SELECT count(*)::int AS number FROM webhook_attempts, webhook_endpoints
    WHERE webhook_endpoints.id = %(endpoint_id)s AND breaker = 'recovering'
        AND endpoint_id = %(endpoint_id)s AND webhook_attempts.id > window_after
        AND job_id IS NOT NULL AND verdict NOT IN {tuple(map(str, NOT_SENT))}
), place AS (
    SELECT CASE WHEN breaker = 'recovering' THEN -1 - used.number ELSE 0 END AS slot
    FROM endpoint, used
    WHERE enabled AND (SELECT count(*) FROM held) < max_in_flight
        AND CASE
            WHEN breaker = 'recovering' THEN used.number < "window"
            WHEN breaker = 'closed' THEN false
            ELSE breaker_until <= statement_timestamp() AND NOT EXISTS (SELECT FROM held WHERE slot = 0)
        END
)
"""  # noqa: S608 (nothing of a caller's)
_WITHOUT = """
opened AS (
    INSERT INTO webhook_attempts (endpoint_id, job_id, topic, number)
    SELECT id, %(job_id)s, %(topic)s, %(number)s FROM endpoint
    RETURNING id, trial
)
SELECT (SELECT id FROM opened), (SELECT trial FROM opened), NULL, endpoint.* FROM endpoint
"""
_FREE_LOST = """
UPDATE webhook_attempts SET slot = NULL
WHERE endpoint_id = %(endpoint_id)s AND slot IS NOT NULL AND started_at < statement_timestamp() - %(age)s::interval
RETURNING id
"""

_FIELDS = ", ".join(f'"{name}"' for name in ENDPOINT_FIELDS)
_BEGINNING = f"WITH {_HELD.format(fields=_FIELDS)}, "
_OPEN_FAVOURITE = f"{_BEGINNING} {_FAVOURITE}"
_OPEN_WELL = f"{_BEGINNING} {_WELL}, {_TAKE}"
_OPEN_NOT_WELL = f"{_BEGINNING} {_NOT_WELL}, {_TAKE}"
_OPEN_OUTSIDE = f"{_BEGINNING} {_WITHOUT}"

# Threads that look at the same moment do not all look at the same place.
_favourites = itertools.count(random.randrange(1_000))  # noqa: S311 (spreads, guards nothing)
_of_thread = threading.local()
# What is known of the endpoints' limits: a favourite place beyond it is none.
_limits: dict[int, int] = {}

Opened = tuple[list[Any] | None, int | None, bool]
"""The endpoint's values, or None where it is gone; the new row's id, or None where there is none; whether it is a trial."""


def take(parameters: dict[str, Any]) -> Opened:
    """Open an attempt where its endpoint has a place for it now.

    One statement and one commit for an endpoint that is well, and where others take the place that was found, some more.
    """
    endpoint_id = parameters["endpoint_id"]
    limit = _limits.get(endpoint_id, IN_FLIGHT_DEFAULT)
    place = {"place": _favourite() % limit + 1}
    values, opened, trial, _ = _once(_OPEN_FAVOURITE, parameters | place)
    if values is None:
        return None, None, False
    endpoint = dict(zip(ENDPOINT_FIELDS, values, strict=True))
    _limits[endpoint_id] = endpoint["max_in_flight"]
    if opened is not None or not endpoint["enabled"]:
        return values, opened, trial
    # The place may be this thread's own, of an attempt whose end is not written yet.
    thread_connection.write_waiting()
    well = endpoint["breaker"] == WebhookEndpoint.Breaker.CLOSED
    query = _OPEN_WELL if well else _OPEN_NOT_WELL
    found = _rounds(query, parameters)
    if found[1] is None and _free_lost(endpoint):
        found = _rounds(query, parameters)
    return found


def take_none(parameters: dict[str, Any]) -> Opened:
    """Open an attempt that needs no place: one that a person waits for."""
    values, opened, trial, _ = _once(_OPEN_OUTSIDE, parameters)
    return values, opened, trial


def free(attempt: WebhookAttempt) -> None:
    """Give its place back, in the caller's transaction."""
    WebhookAttempt.objects.filter(pk=attempt.pk).update(slot=None)


def _rounds(query: str, parameters: dict[str, Any]) -> Opened:
    hint = {"hint": _favourite()}
    for _ in range(ROUNDS):
        values, opened, trial, place = _once(query, parameters | hint)
        if opened is not None or place is None:
            break
    return values, opened, trial


def _favourite() -> int:
    """The number from which this thread begins to look."""
    number: int | None = getattr(_of_thread, "number", None)
    if number is None:
        number = _of_thread.number = next(_favourites)
    return number


def _once(
    query: str, parameters: dict[str, Any]
) -> tuple[list[Any] | None, int | None, bool, int | None]:
    rows = thread_connection.execute(query, parameters)
    if not rows:
        return None, None, False, None
    opened, trial, place, *values = rows[0]
    return values, opened, bool(trial), place


def _free_lost(endpoint: dict[str, Any]) -> bool:
    """Free the places of those whose workers were killed; return whether there was one."""
    timeout: dt.timedelta = endpoint["timeout"] or settings.NOTIFY_WEBHOOK_TIMEOUT
    parameters = {"endpoint_id": endpoint["id"], "age": timeout + LOST_AFTER}
    return bool(thread_connection.execute(_FREE_LOST, parameters))
