from __future__ import annotations

from jobs.action_result import Result, Skip
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
