"""Random deeds of agents, people, runners and misfortune on the worktrees of one clone, with real git and the product's own functions.

Whatever is done in whatever order, and wherever it is killed: no byte that was in a worktree is lost but by who works in it,
what comes back is what it was, down to what git says of it, what is held is there and locked, nobody is warned twice or pruned
unwarned where that is required, nothing that was planted runs, and no secret gets into logs or rows.

In ``make test`` the sequences are the same in each run. ``MODEL_MINUTES=10`` plays others, for so long, and tells what
they came to::

    MODEL_MINUTES=10 .venv/bin/python -X dev -m pytest tests/workspaces/test_model.py
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis.stateful import run_state_machine_as_test
from pytest_django import Settings

from tests.jobs.test_model import MINUTES, played
from tests.workspaces.modelled.playing import Playing
from tests.workspaces.modelled.stage import Ground
from tests.workspaces.remote import Remote
from tests.workspaces.witness import Tripwire
from workspaces import clones

pytestmark = pytest.mark.long

REACHED = {
    "acquire again: ok",
    "came back",
    "killed: archive",
    "killed: restore",
    "pruned: pruned",
    "warned",
}
"""What random sequences that prove anything come to."""


@pytest.fixture
def ground(
    transactional_db: None,
    data_dir: Path,
    remote: Remote,
    tripwire: Tripwire,
    tmp_path: Path,
) -> Ground:
    clones.add_workspace("demo", remote.url)
    return Ground(
        remote=tmp_path / "remotes",
        data=data_dir,
        fires=tripwire.program,
        mark=tmp_path / "FIRED",
    )


@pytest.fixture
def play(
    ground: Ground, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    # Nothing here outlives the machine, so nothing waits for the disk.
    monkeypatch.setattr(os, "sync", lambda: None)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    settings.JOBS_WORKTREE_PRUNE_REQUIRE_WARNING = False

    def plays(**options: Any) -> None:
        run_state_machine_as_test(
            lambda: Playing(ground, tmp_path),  # type: ignore[arg-type] # it takes functions too
            settings=played(**options),
        )

    return plays


def test_no_work_is_lost_whatever_comes_in_whatever_order(
    play: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    Playing.seen.clear()
    if not MINUTES:
        play(examples=6, steps=12, same=True)
        assert {what for what, count in Playing.seen.items() if count} >= REACHED
        return
    ends = time.monotonic() + 60 * MINUTES
    while time.monotonic() < ends:
        play(examples=10, steps=50, same=False)
    with capsys.disabled():
        told = [f"{count:9,} {what}" for what, count in sorted(Playing.seen.items())]
        sys.stdout.write("\n".join(["", *told, ""]))
