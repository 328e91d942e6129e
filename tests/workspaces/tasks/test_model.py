"""Random actions of many actors on a few tasks, with a clock that jumps and jobs that come late, early, twice and in any order.

What is done goes through the product, on the tests' PostgreSQL. After each step the tables have to be what
:mod:`tests.workspaces.tasks.modelled.expected` says, which shares no code with the state machine: states, deadlines, records,
history, who was told what, and a job for each deadline that counts. In the end nobody acts any more, and all tasks end.

In ``make test`` the sequences are the same in each run. ``MODEL_MINUTES=10`` plays others, for so long, and tells what
they came to::

    MODEL_MINUTES=10 .venv/bin/python -X dev -m pytest tests/workspaces/tasks/test_model.py
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis.stateful import run_state_machine_as_test
from pytest_django import Settings

from tests.jobs.test_model import MINUTES, played
from tests.workspaces.tasks.modelled import world
from tests.workspaces.tasks.modelled.cast import assembled
from tests.workspaces.tasks.modelled.playing import Market
from tests.workspaces.tasks.modelled.stage import Stopped
from workspaces.tasks import clock

pytestmark = pytest.mark.long

REACHED = [
    "accept: ok",
    "cancel: ok",
    "checkpoint: ok",
    "checkpoint_miss: ok",
    "checkpoint_warn: ok",
    "contest_close: ok",
    "give_back: ok",
    "hold_timeout: ok",
    "offer_transfer: ok",
    "open_expire: ok",
    "pick_winner: ok",
    "reject: ok",
    "reopen: ok",
    "review_auto_accept: ok",
    "review_warn: ok",
    "submit: ok",
    "submit: too_late",
    "take: ok",
    "take: too_late",
]
"""What random sequences that prove anything come to."""


@pytest.fixture
def play(
    db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., None]]:
    # What the steps set goes with what is set here.
    settings.TASKS_CHECKPOINT_WARNING_LEAD = world.CHECKPOINT_LEAD
    settings.TASKS_REVIEW_WARNING_LEAD = world.REVIEW_LEAD
    settings.TASKS_TRANSFER_FOR = world.TRANSFER_FOR
    stopped = Stopped()
    monkeypatch.setattr(clock, "now", stopped.now)
    cast = assembled()

    def plays(**options: Any) -> None:
        run_state_machine_as_test(
            lambda: Market(cast, stopped),  # type: ignore[arg-type] # it takes functions too
            settings=played(**options),
        )

    # A failure prints its steps, which say more than ten thousand records.
    logging.disable()
    yield plays
    logging.disable(logging.NOTSET)


def test_tasks_come_to_what_was_promised_whatever_is_done_in_whatever_order(
    play: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    if not MINUTES:
        play(examples=18, steps=40, same=True)
        missing = [what for what in REACHED if not Market.seen[what]]
        assert not missing
        return
    ends = time.monotonic() + 60 * MINUTES
    while time.monotonic() < ends:
        play(examples=20, steps=60, same=False)
    with capsys.disabled():
        told = [f"{count:9,} {what}" for what, count in sorted(Market.seen.items())]
        sys.stdout.write("\n".join(["", *told, ""]))
