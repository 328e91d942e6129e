from __future__ import annotations

import datetime as dt
import time

import pytest
from django.utils import timezone
from pytest_django import Settings

from jobs import concurrency
from jobs.models import Job
from jobs.testing import run_due_jobs
from notify.health import gate, switching
from notify.health.lanes import Lane
from notify.models import WebhookAttempt, WebhookEndpoint
from tests.notify import sinks
from tests.notify.factories import AttemptFactory, EndpointFactory
from tests.notify.flow import statuses, tell
from tests.notify.sinks import Sink

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("webhooks_on")]

SECOND = dt.timedelta(seconds=1)


def in_(seconds: float) -> dt.datetime:
    return timezone.now() + dt.timedelta(seconds=seconds)


def seconds_until_due() -> list[float]:
    now = timezone.now()
    times = Job.objects.order_by("id").values_list("run_at", flat=True)
    return [(at - now).total_seconds() for at in times]


def test_each_reason_is_said_in_words(settings: Settings):
    assert "deleted" in gate.reason_to_wait(None)
    off = WebhookEndpoint(enabled=False, disabled_reason="")
    assert gate.reason_to_wait(off).endswith("is disabled")
    gone = WebhookEndpoint(enabled=False, disabled_reason="HTTP 410")
    assert gate.reason_to_wait(gone).endswith("is disabled: HTTP 410")
    assert "parked" in gate.reason_to_wait(WebhookEndpoint(breaker="parked"))
    assert gate.reason_to_wait(WebhookEndpoint()) == ""
    settings.NOTIFY_WEBHOOK_ENABLED = False
    assert "NOTIFY_WEBHOOK_ENABLED" in gate.reason_to_wait(WebhookEndpoint())


def test_what_acw_itself_keeps_back_is_told_from_what_a_person_switched_off(
    settings: Settings,
):
    assert gate.is_kept_back(WebhookEndpoint(enabled=False, disabled_reason="x"))
    assert gate.is_kept_back(WebhookEndpoint(breaker="open"))
    assert gate.is_kept_back(WebhookEndpoint(breaker="parked"))
    by_hand = WebhookEndpoint(enabled=False, disabled_reason="", breaker="open")
    assert not gate.is_kept_back(by_hand)
    settings.NOTIFY_WEBHOOK_ENABLED = False
    assert not gate.is_kept_back(WebhookEndpoint(breaker="open"))


def test_one_that_is_turned_away_takes_all_that_is_due_along_to_when_it_may_go(
    sink: Sink,
):
    EndpointFactory(
        url=sink.url, breaker="open", breaker_since=in_(0), breaker_until=in_(-1)
    )
    tell(50)
    WebhookEndpoint.objects.update(breaker_until=in_(600))

    executed = run_due_jobs(at_most=50)

    assert len(executed) == 50  # they had been claimed at once
    assert all(590 < seconds < 660 for seconds in seconds_until_due())
    assert {attempts for _, attempts in statuses()} == {0}
    assert WebhookAttempt.objects.count() == 0
    assert sink.connections == []


def test_of_a_backlog_one_call_moves_what_nobody_holds():
    endpoint = EndpointFactory(breaker="open", breaker_since=in_(0))
    tell(20)
    endpoint.breaker_until = in_(600)
    endpoint.save()

    delay = gate.turn_away(endpoint)

    assert 590 < delay.total_seconds() < 610
    seconds = seconds_until_due()
    assert min(seconds) > 590
    assert seconds == sorted(seconds)


def test_while_another_tries_the_rest_waits_as_long_as_that_may_take():
    endpoint = EndpointFactory(
        breaker="open", breaker_until=in_(-5), timeout=7 * SECOND
    )
    assert gate.turn_away(endpoint) == gate.SOONEST
    AttemptFactory(endpoint=endpoint, slot=0, trial=True)

    assert gate.turn_away(endpoint) == 7 * SECOND


def test_for_a_place_one_waits_about_as_long_as_it_takes_to_become_free(
    monkeypatch: pytest.MonkeyPatch,
):
    endpoint = EndpointFactory(max_in_flight=4)
    AttemptFactory(endpoint=endpoint, duration=40 * SECOND)

    assert gate.turn_away(endpoint) == 8 * SECOND
    for slot in (-1, -2, -3, -4):
        AttemptFactory(endpoint=endpoint, slot=slot, duration=40 * SECOND)
    endpoint.breaker, endpoint.window = "recovering", 8
    endpoint.save()
    monkeypatch.setitem(gate._next_move, endpoint.pk, time.monotonic() + 60)
    assert gate.turn_away(endpoint) == 8 * SECOND


def test_of_those_that_wait_for_the_next_window_one_looks_again_soon(
    monkeypatch: pytest.MonkeyPatch,
):
    endpoint = EndpointFactory(breaker="recovering", window=1, breaker_until=in_(600))
    AttemptFactory(endpoint=endpoint, slot=-1)

    assert gate.turn_away(endpoint) == gate.SOONEST
    monkeypatch.setitem(gate._next_move, endpoint.pk, time.monotonic() + 60)
    assert gate.turn_away(endpoint) > 590 * SECOND


def test_while_webhooks_are_switched_off_one_looks_again_every_minute(
    settings: Settings,
):
    settings.NOTIFY_WEBHOOK_ENABLED = False
    assert gate.turn_away(EndpointFactory()) == gate.LOOK_AGAIN


def test_what_waits_for_an_endpoint_that_is_disabled_is_seldom_written_anew(
    settings: Settings,
):
    tell_to = EndpointFactory()
    tell(3)
    switching.disable(tell_to, actor="alice")
    assert gate.turn_away(tell_to) == settings.NOTIFY_WEBHOOK_BREAKER_MAX_WAIT
    assert min(seconds_until_due()) > 800

    switching.enable(tell_to, actor="alice")

    assert sum(seconds < 1 for seconds in seconds_until_due()) == 1  # the first window


def test_for_a_thread_one_waits_in_the_queue_and_takes_the_others_along():
    endpoint = EndpointFactory(max_in_flight=4)
    AttemptFactory(endpoint=endpoint, duration=10 * SECOND)
    tell(3)

    assert gate.turn_away_at_lane(Lane(endpoint.pk, slow=True)) == 4 * SECOND
    assert min(seconds_until_due()) > 3
    quick = Lane(endpoint.pk, slow=False)
    assert gate.turn_away_at_lane(quick) < SECOND  # moved a moment ago
    gate._next_move.clear()
    assert gate.turn_away_at_lane(quick) == 2 * SECOND
    assert gate.turn_away_at_lane(Lane(0, slow=True)) == 2 * SECOND


def test_one_that_has_been_under_way_for_a_while_is_expected_to_take_as_long_again():
    endpoint = EndpointFactory()
    lane = Lane(endpoint.pk, slow=True, began=time.monotonic() - 1.5)

    assert SECOND < gate.turn_away_at_lane(lane) <= 2 * SECOND


def test_what_was_turned_away_from_a_quick_one_comes_forward(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(concurrency, "_threads", 1)
    endpoint = EndpointFactory(max_in_flight=3)
    tell(4)
    Job.objects.update(run_at=in_(60))

    gate.let_in(endpoint)
    assert Job.objects.due().count() == 2

    endpoint.breaker = "open"
    Job.objects.update(run_at=in_(60))
    gate.let_in(endpoint)
    assert not Job.objects.due().exists()


def test_one_that_has_failed_is_not_brought_back_before_its_time(sink: Sink):
    sink.behave = sinks.answer(503, {"Retry-After": "600"})
    endpoint = EndpointFactory(url=sink.url)
    tell()
    run_due_jobs()

    gate.let_in(endpoint)

    assert min(seconds_until_due()) > 590


def test_a_long_backlog_is_not_moved_for_each_one_that_is_turned_away():
    endpoint = EndpointFactory(enabled=False)
    WebhookEndpoint.objects.update(enabled=True)
    tell(2)
    gate.turn_away(endpoint)
    Job.objects.update(run_at=in_(-1))

    gate.turn_away(endpoint)

    assert max(seconds_until_due()) < 0


def test_one_that_is_enabled_while_others_are_turned_away_from_it_waits_no_longer(
    monkeypatch: pytest.MonkeyPatch,
):
    """What is let out meanwhile is moved away with the rest: the one that moves it comes again."""
    tell_to = EndpointFactory()
    tell(3)
    switching.disable(tell_to, actor="alice")
    move = gate._move

    def overtaken(read: WebhookEndpoint, **how: dt.timedelta) -> bool:
        switching.enable(WebhookEndpoint.objects.get(pk=read.pk), actor="alice")
        return move(read, **how)

    monkeypatch.setattr(gate, "_move", overtaken)
    assert gate.turn_away(tell_to) == gate.SOONEST
