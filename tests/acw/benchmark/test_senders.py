from __future__ import annotations

from acw.benchmark import children
from acw.benchmark.children import Child
from acw.benchmark.scratch import Scratch


def test_the_plain_listener_hears_every_job_of_the_plain_sender(scratch: Scratch):
    programs = [
        Child("acw.benchmark.senders", [kind, 20, 0.001], scratch.env())
        for kind in ("listen", "insert")
    ]
    with children.together(programs):
        heard, _ = children.run(programs)
    assert len(heard["times"]) == 20
    assert min(heard["times"]) > 0
