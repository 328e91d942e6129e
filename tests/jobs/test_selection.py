from __future__ import annotations

from pytest_django import Settings

from jobs.registry import job_handler
from jobs.selection import Queues, host_queue


def test_all_queues_are_those_of_the_types_and_this_hosts_own(
    settings: Settings,
) -> None:
    settings.ACW_HOST = "here"
    job_handler("test.mail", queue="mail")(lambda context, payload: None)
    names = Queues().names()
    assert {"default", "mail", "host:here"} <= set(names)


def test_another_hosts_queue_is_never_taken(settings: Settings) -> None:
    settings.ACW_HOST = "here"
    queues = Queues()
    assert not queues.discover(["host:there"])
    assert queues.discover([host_queue("here")])
    assert "host:there" not in queues.names()


def test_what_turns_up_is_served_from_then_on() -> None:
    queues = Queues()
    assert queues.discover(["reports"])
    assert "reports" in queues.names()


def test_named_queues_are_all_there_is() -> None:
    queues = Queues(["mail", "host:there"])
    assert queues.names() == ["host:there", "mail"]
    assert not queues.discover(["default"])
    assert queues.discover(["mail", "default"])
    assert queues.names() == ["host:there", "mail"]
