from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from notify.deadline import Deadline


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_the_time_left_never_falls_below_zero():
    with Deadline(0) as deadline:
        assert deadline.left == 0
        assert deadline.passed


def test_before_its_time_a_deadline_has_not_passed():
    with Deadline(60) as deadline:
        assert 0 < deadline.left <= 60
        assert not deadline.passed


def test_it_wakes_whoever_waits_on_the_socket(pair):
    ours, _ = pair
    with Deadline(0.05) as deadline:
        deadline.watch(ours)

        assert ours.recv(1) == b""
        assert deadline.passed
        assert deadline.disarm()


def test_it_works_through_a_socket_that_was_detached(pair):
    """TLS takes the descriptor over, and closes the object that was watched."""
    ours, _ = pair
    with Deadline(0.05) as deadline:
        deadline.watch(ours)
        with socket.socket(fileno=ours.detach()) as taken_over:
            assert taken_over.recv(1) == b""


def test_once_disarmed_it_cuts_nothing_off(pair):
    ours, theirs = pair
    with Deadline(60) as deadline:
        deadline.watch(ours)

        assert not deadline.disarm()
        theirs.sendall(b"x")
        assert ours.recv(1) == b"x"


def test_what_is_left_can_be_shortened(pair):
    ours, _ = pair
    with Deadline(60) as deadline:
        deadline.watch(ours)
        deadline.disarm()
        deadline.shorten(0.05)

        assert ours.recv(1) == b""


def test_it_leaves_no_timer_behind(pair):
    ours, _ = pair
    earlier = set(threading.enumerate())
    with Deadline(60) as deadline:
        deadline.watch(ours)
        # Threads of earlier tests may still be coming to their ends: only the new one counts.
        [timer] = set(threading.enumerate()) - earlier
    timer.join(timeout=10)

    assert not timer.is_alive()
