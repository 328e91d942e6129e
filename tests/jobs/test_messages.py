from __future__ import annotations

import json

import pytest

from jobs import messages
from jobs.identifiers import uuid7
from jobs.messages import ANY, Message

ODD_NAMES = ["a,b", "probe:x", '["mail"]', '{"cancel": []}', "", "ü\n\x1f", "null"]


def test_the_names_of_queues_come_as_they_are() -> None:
    assert messages.read(messages.of_queues(ODD_NAMES)).queues == tuple(
        sorted(ODD_NAMES)
    )


@pytest.mark.parametrize("name", ODD_NAMES)
def test_no_name_of_a_queue_is_taken_for_something_else(name: str) -> None:
    assert messages.read(messages.of_queues([name])) == Message(queues=(name,))


def test_more_names_than_a_message_has_room_for_are_any() -> None:
    many = [f"{n:03}" + "ü" * 290 for n in range(30)]
    assert messages.of_queues(many) == ANY
    assert messages.read(ANY) == Message(queues=None)


def test_leases_to_be_cancelled_come_as_they_are_in_as_many_messages_as_it_takes() -> (
    None
):
    leases = {(uuid7(), 2**63 - 1 - n) for n in range(250)}
    said = list(messages.of_cancelled(leases))
    assert len(said) == 3
    assert max(map(len, said)) < 8_000
    heard = [messages.read(text) for text in said]
    assert frozenset().union(*(message.cancelled for message in heard)) == leases
    assert {message.queues for message in heard} == {()}


def test_a_probe_comes_as_it_is_and_wakes_nobody() -> None:
    assert messages.read(messages.of_probe("x")) == Message(probe="x")


@pytest.mark.parametrize("text", ["", "mail", "a,b", "{", "7", "null", '"mail"'])
def test_what_is_none_of_ours_has_all_look_for_work(text: str) -> None:
    assert messages.read(text) == Message(queues=None)


def test_what_a_newer_version_says_is_left_alone() -> None:
    assert messages.read('{"pause": ["mail"]}') == Message()


@pytest.mark.parametrize(
    "said",
    [
        None,
        7,
        "x",
        {"a": 1},
        [7],
        [["x", 1]],
        [[uuid7().hex, None]],
        [[uuid7().hex, float("inf")]],
        [[uuid7().hex]],
        [[7, 7]],
    ],
)
def test_leases_that_are_none_are_left_alone(said: object) -> None:
    assert messages.read(json.dumps({"cancel": said})).cancelled == frozenset()


def test_a_message_that_is_too_deep_for_python_has_all_look() -> None:
    assert messages.read("[" * 100_000) == Message(queues=None)


@pytest.mark.parametrize("name", ["\x00", "\ud800", 7, None])
def test_what_no_queue_can_be_called_is_left_out(name: object) -> None:
    """Any role that can connect may notify; what it says must not end a worker."""
    assert messages.read(json.dumps(["a", name])).queues == ("a",)
