from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from jobs import stacks
from jobs.outcomes import TRACEBACK_LIMIT
from jobs.testing import wait_until


def deep(levels: int, go: threading.Event) -> None:
    if levels:
        deeper(levels - 1, go)
    else:
        go.wait()


def deeper(levels: int, go: threading.Event) -> None:
    # By turns, since Python sums up the lines of one function that calls itself.
    deep(levels, go)


@pytest.fixture
def go() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def hanging(levels: int, go: threading.Event) -> threading.Thread:
    thread = threading.Thread(target=deep, args=[levels, go], name="hanging")
    thread.start()
    return thread


def test_it_names_the_line_at_which_a_thread_hangs(go: threading.Event) -> None:
    thread = hanging(0, go)
    wait_until(lambda: "go.wait()" in stacks.where(thread))
    stack = stacks.where(thread)
    assert stack.startswith("hanging is here (innermost call last):\n")
    assert "in deep\n    go.wait()" in stack
    go.set()
    thread.join()
    assert stacks.where(thread) == "(hanging does not run)"


def test_a_deep_stack_is_capped_and_keeps_both_ends(go: threading.Event) -> None:
    thread = hanging(350, go)
    wait_until(lambda: "go.wait()" in stacks.where(thread))
    stack = stacks.where(thread)
    assert "characters left out" in stack
    assert len(stack) < TRACEBACK_LIMIT + 100
    assert "in run" in stack
    go.set()
    thread.join()


def test_a_thread_that_was_not_started_has_no_stack() -> None:
    assert stacks.where(threading.Thread(name="idle")) == "(idle does not run)"
