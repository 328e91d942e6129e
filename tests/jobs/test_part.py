from __future__ import annotations

import pytest

from jobs import part as part_module
from jobs.part import Part
from jobs.testing import wait_until


class Waits(Part):
    def work(self) -> None:
        self.stopping.wait()


class Breaks(Part):
    def work(self) -> None:
        raise ValueError("broken")


def test_a_part_works_until_it_is_told_to_stop() -> None:
    part = Waits("part")
    part.start()
    assert part.is_alive()
    part.stop()
    part.join(10)
    assert not part.is_alive()
    assert part.error is None


def test_what_broke_it_is_kept_for_whoever_watches() -> None:
    part = Breaks("part")
    part.start()
    part.join(10)
    assert isinstance(part.error, ValueError)


def test_a_wait_that_will_end_is_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_module, "look_every", lambda: 0.001)
    part = Waits("part")
    assert (part.progress.name, part.progress.count) == ("part", 0)
    part.wait(0.05)
    assert part.progress.count > 2


def test_a_wait_ends_with_the_stop() -> None:
    part = Waits("part")
    part.stop()
    part.wait(3600)
    assert part.progress.count == 1


def test_a_part_that_waits_for_ever_leaves_no_sign() -> None:
    part = Waits("part")
    part.start()
    wait_until(lambda: part.progress.count == 1, "started")
    part.stop()
    part.join(10)
    assert part.progress.count == 1
