from __future__ import annotations

from jobs.claims import BATCH_SECONDS, LARGEST_BATCH
from jobs.estimates import Estimates
from tests.jobs.support import leased_job


def busy() -> Estimates:
    """Of a pool whose last claim took a whole batch from the queue."""
    estimates = Estimates()
    estimates.claimed([leased_job()] * LARGEST_BATCH)
    return estimates


def test_what_was_never_seen_is_taken_alone() -> None:
    estimates = Estimates()
    assert estimates.cost("new") == BATCH_SECONDS
    assert estimates.limit("new") == 1


def test_quick_jobs_come_by_the_hundreds() -> None:
    estimates = busy()
    estimates.record("quick", "default", 0.00001)
    assert estimates.limit("default") == LARGEST_BATCH
    assert estimates.cost("quick") == 0.00001


def test_slow_jobs_come_alone() -> None:
    estimates = Estimates()
    estimates.record("fetch", "default", 5.0)
    assert estimates.limit("default") == 1
    assert estimates.cost("fetch") == 5.0


def test_a_batch_is_worth_a_fixed_time() -> None:
    estimates = busy()
    estimates.record("some", "default", BATCH_SECONDS / 20)
    assert estimates.limit("default") == 20


def test_a_type_that_turns_slow_or_quick_is_followed() -> None:
    estimates = busy()
    estimates.record("some", "default", 0.0001)
    for _ in range(20):
        estimates.record("some", "default", 1.0)
    assert estimates.cost("some") > 0.9
    for _ in range(40):
        estimates.record("some", "default", 0.0001)
    assert estimates.limit("default") > 50


def test_an_unmeasurably_quick_job_divides_by_nothing() -> None:
    estimates = busy()
    estimates.record("none", "default", 0.0)
    assert estimates.limit("default") == LARGEST_BATCH
    assert estimates.costs(["none"])["none"] > 0


def test_a_queue_is_asked_for_twice_what_it_gave() -> None:
    """What is asked for is locked in every queue, and hidden from other workers, before one batch is kept."""
    estimates = Estimates()
    for queue in ("default", "busy"):
        estimates.record("quick", queue, 0.00001)
    estimates.claimed([leased_job(queue="busy")] * 60 + [leased_job()])
    assert estimates.limit("busy") == 120
    first = estimates.limit("default")
    assert 2 <= first < 60
    estimates.claimed([])
    assert estimates.limit("busy") == first


def test_an_eager_queue_reaches_the_largest_batch_within_a_few_claims() -> None:
    estimates = Estimates()
    estimates.record("quick", "default", 0.00001)
    for _ in range(6):
        estimates.claimed([leased_job()] * estimates.limit("default"))
    assert estimates.limit("default") == LARGEST_BATCH
