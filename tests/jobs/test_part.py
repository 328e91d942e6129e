from __future__ import annotations

from jobs.part import Part


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
