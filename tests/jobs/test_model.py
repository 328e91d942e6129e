"""Random sequences of the queue's verbs, played by several workers and operators, compared with a model step by step.

Every statement is the product's own and runs on the tests' PostgreSQL. Workers die, keep results for later, hear too late of
what they have claimed, and write what they have written already; transactions stay open while others act, and
then commit or roll back. Time passes as the table's times are moved into the past.

After each step the table is read and has to be what :mod:`tests.jobs.modelled.table` says, and to keep what the queue
promises whatever the model says. A failure prints the shortest sequence of steps that was found.

In ``make test`` the sequences are the same in each run. ``MODEL_MINUTES=10`` plays others, for so long, and tells what
they came to::

    MODEL_MINUTES=10 .venv/bin/python -X dev -m pytest tests/jobs/test_model.py
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from pytest_django import Settings

from jobs import runners
from tests.jobs.modelled.actors import Actors
from tests.jobs.modelled.overlapping import Overlapping as Queue
from tests.jobs.modelled.stage import HOUR, Handlers

pytestmark = pytest.mark.long

MINUTES = float(os.environ.get("MODEL_MINUTES", "0"))
REACHED = Counter(
    [
        "claimed",
        "key taken",
        "leases that do not hold",
        "leases that hold",
        "purged",
        "reaped: dead",
        "reaped: pending",
        "recovered",
        "repeat",
        "results",
        "retry",
    ]
)
"""What random sequences that prove anything come to."""


def played(*, examples: int, steps: int, same: bool) -> settings:
    """``same`` plays the same sequences in each run."""
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        derandomize=same,
        database=None,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture
def actors(transactional_db: None) -> Iterator[Actors]:
    with Actors(workers=3) as all_of_them:
        yield all_of_them


@pytest.fixture
def play(
    actors: Actors, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    # Longer than a sequence takes, so that what is due is never a matter of how fast it was played.
    settings.JOBS_BACKOFF_BASE, settings.JOBS_BACKOFF_MAX = HOUR, 4 * HOUR
    monkeypatch.setattr(runners, "REAP_BATCH", 2)
    monkeypatch.setattr(runners, "PURGE_BATCH", 2)
    handlers = Handlers()

    def plays(**options: Any) -> None:
        run_state_machine_as_test(
            lambda: Queue(actors, handlers),  # type: ignore[arg-type] # it takes functions too
            settings=played(**options),
        )

    return plays


def test_the_queue_keeps_its_promises_whatever_comes_in_whatever_order(
    play: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    if not MINUTES:
        play(examples=35, steps=40, same=True)
        assert +Queue.seen >= REACHED
        return
    ends = time.monotonic() + 60 * MINUTES
    while time.monotonic() < ends:
        play(examples=20, steps=60, same=False)
    with capsys.disabled():
        told = [f"{count:9,} {what}" for what, count in sorted(Queue.seen.items())]
        sys.stdout.write("\n".join(["", *told, ""]))
