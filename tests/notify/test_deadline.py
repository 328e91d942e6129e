from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from notify.deadline import Deadline, TimedSocket

MORE_THAN_BUFFERS_TAKE = b"x" * 20_000_000


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_the_time_left_never_falls_below_zero():
    deadline = Deadline(0)

    assert deadline.left == 0
    assert deadline.passed


def test_before_its_time_a_deadline_has_not_passed():
    deadline = Deadline(60)

    assert 0 < deadline.left <= 60
    assert not deadline.passed


def test_what_is_left_can_be_shortened_and_not_lengthened():
    deadline = Deadline(60)
    deadline.shorten(5)
    deadline.shorten(30)

    assert 0 < deadline.left <= 5


def test_what_is_sent_and_received_passes_unchanged(pair):
    ours, theirs = pair
    timed = TimedSocket(ours, Deadline(60))
    timed.sendall(b"question")
    theirs.sendall(b"one\ntwo\n")

    with timed.makefile() as received:
        assert theirs.recv(100) == b"question"
        assert received.readline() == b"one\n"
        assert received.readline() == b"two\n"


def test_reading_from_a_peer_that_says_nothing_ends_at_the_deadline(pair):
    ours, _ = pair
    with (
        TimedSocket(ours, Deadline(0.05)).makefile() as received,
        pytest.raises(TimeoutError),
    ):
        received.read(1)


def test_sending_to_a_peer_that_takes_nothing_ends_at_the_deadline(pair):
    ours, _ = pair
    deadline = Deadline(0.05)

    with pytest.raises(TimeoutError):
        TimedSocket(ours, deadline).sendall(MORE_THAN_BUFFERS_TAKE)

    assert deadline.passed


def test_each_call_is_given_what_is_left_of_the_whole(pair):
    """And not the whole anew, with which a peer that sends a byte now and then would go on for ever."""
    ours, theirs = pair
    deadline = Deadline(60)
    theirs.sendall(b"xy")
    with TimedSocket(ours, deadline).makefile() as received:
        received.read(1)
        first = ours.gettimeout()
        deadline.shorten(5)
        theirs.sendall(b"z")
        received.read(2)
        second = ours.gettimeout()

    assert first is not None
    assert second is not None
    assert 5 < first <= 60
    assert 0 < second <= 5


def test_after_the_deadline_nothing_is_begun_though_it_would_not_wait(pair):
    ours, theirs = pair
    theirs.sendall(b"x")
    timed = TimedSocket(ours, Deadline(0))

    with timed.makefile() as received, pytest.raises(TimeoutError):
        received.read(1)
    with pytest.raises(TimeoutError):
        timed.sendall(b"x")
