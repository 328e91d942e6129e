from __future__ import annotations

import datetime as dt

from django.utils import timezone

from jobs.action_result import Asked, Result, Skip
from jobs.identifiers import uuid7

LIVE = "a live job has the key"


def skipped(count: int, reason: str = LIVE, *, held: bool = False) -> list[Skip]:
    return [
        Skip(target=uuid7(), reason=reason, holder=uuid7() if held else None)
        for _ in range(count)
    ]


def test_it_says_how_many_were_done():
    done = [uuid7() for _ in range(1_234)]
    assert str(Result(participle="retried", done=list(done))) == "1,234 retried"


def test_it_says_that_nothing_was_done():
    assert str(Result(participle="retried")) == "0 retried"


def test_it_names_the_job_in_the_way():
    (skip,) = skipped(1, held=True)
    result = Result(participle="retried", done=[uuid7()], skipped=[skip])
    assert str(result) == f"1 retried, 1 skipped: {LIVE} (#{skip.holder})"


def test_it_names_three_of_many_jobs_in_the_way():
    skips = skipped(5, held=True)
    named = ", ".join(f"#{skip.holder}" for skip in skips[:3])
    result = Result(participle="retried", skipped=skips)
    assert str(result) == f"0 retried, 5 skipped: {LIVE} ({named}, …)"


def test_it_counts_each_reason():
    result = Result(
        participle="cancelled",
        skipped=[*skipped(2, "no such job"), *skipped(1, "busy")],
    )
    assert str(result) == "0 cancelled, 2 skipped: no such job, 1 skipped: busy"


def test_it_says_that_there_is_more_to_do():
    result = Result(participle="retried", done=[uuid7()], unfinished=True)
    assert str(result) == "1 retried; there are more, do it again"


def asked(worker: str, *, since: dt.datetime | None = None) -> Asked:
    return Asked(target=uuid7(), worker=worker, since=since)


def test_it_says_where_what_was_asked_to_stop_is_running():
    result = Result(participle="cancelled", done=[uuid7()], asked=[asked("w1")])
    assert str(result) == "1 cancelled, 1 asked to stop: it is running on w1"


def test_it_does_not_say_that_nothing_was_done_where_something_was_asked():
    result = Result(participle="cancelled", asked=[asked("w1")])
    assert str(result) == "1 asked to stop: it is running on w1"


def test_it_names_three_of_many_workers_each_once():
    result = Result(
        participle="cancelled", asked=[asked(name) for name in ("a", "a", *"bcde")]
    )
    assert str(result) == "6 asked to stop: they are running on a, b, c, …"


def test_what_was_asked_before_is_told_apart_with_the_earliest_time():
    now = timezone.now().replace(hour=12)
    earlier = [asked("b", since=now), asked("b", since=now - dt.timedelta(minutes=9))]
    result = Result(participle="cancelled", asked=[asked("a"), *earlier])
    assert str(result) == (
        "1 asked to stop: it is running on a, 2 asked to stop already, at"
        f" {now - dt.timedelta(minutes=9):%H:%M} UTC: they are running on b"
    )
