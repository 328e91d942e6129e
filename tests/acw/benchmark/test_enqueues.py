from __future__ import annotations

from collections.abc import Callable

import pytest

from acw.benchmark import children, enqueues
from acw.benchmark.errors import CountError
from acw.benchmark.figures import Figure
from acw.benchmark.scratch import Scratch


@pytest.mark.parametrize(
    ("measure", "plain", "product"),
    [
        (enqueues.measure_single, "insert", "enqueue"),
        (enqueues.measure_bulk, "unnest", "enqueue_many"),
    ],
)
def test_floor_and_product_take_turns(
    scratch: Scratch,
    monkeypatch: pytest.MonkeyPatch,
    measure: Callable[..., list[Figure]],
    plain: str,
    product: str,
):
    taken = []

    def add(scratch: Scratch, kind: str, *, count: int) -> float:
        taken.append(kind)
        return 200.0 if kind == plain else 150.0

    monkeypatch.setattr(enqueues, "_add", add)
    (figure,) = measure(scratch, rounds=2, short=True)
    assert taken == [plain, product] * 2
    assert figure.ratio == 0.75


def test_jobs_that_are_not_in_the_table_are_refused(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(children, "run", lambda clients: [{"began": 0, "ended": 1}])
    with pytest.raises(CountError, match="3 jobs were enqueued and 0 are in the table"):
        enqueues._add(scratch, "insert", count=3)


def test_a_rate_is_that_of_all_clients_together(scratch: Scratch):
    rate = enqueues._add_at_once(
        scratch, "insert", count=5, processes=2, threads=3, wake=True
    )
    assert rate > 0


def test_many_clients_are_measured_with_notifications_and_without(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
):
    taken = []

    def add(scratch: Scratch, kind: str, **options: object) -> float:
        taken.append((kind, options["processes"], options["threads"], options["wake"]))
        return 90.0 if options["wake"] else 100.0

    class NoWorkers:
        def __init__(self, scratch: Scratch, *, queues: str) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(enqueues, "_add_at_once", add)
    monkeypatch.setattr(enqueues, "Workers", NoWorkers)
    (figure,) = enqueues.measure_clients(scratch, rounds=2, short=True)
    assert taken == [("enqueue", 4, 8, False), ("enqueue", 4, 8, True)] * 2
    assert figure.ratio == 0.9
