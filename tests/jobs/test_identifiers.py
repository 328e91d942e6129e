from __future__ import annotations

import time

from jobs.identifiers import uuid7


def test_it_is_a_version_7_uuid_of_the_rfc_variant() -> None:
    made = uuid7()
    assert made.version == 7
    assert made.variant == "specified in RFC 4122"


def test_its_first_48_bits_are_milliseconds_since_the_epoch() -> None:
    before = time.time_ns() // 1_000_000
    made = uuid7().int >> 80
    after = time.time_ns() // 1_000_000
    assert before <= made <= after


def test_no_two_are_equal() -> None:
    assert len({uuid7() for _ in range(20_000)}) == 20_000


def test_their_order_is_that_of_their_making_across_microseconds() -> None:
    earlier = uuid7()
    start = time.time_ns()
    while time.time_ns() < start + 10_000:
        pass
    assert earlier < uuid7()
