from __future__ import annotations

import datetime as dt

import pytest

from notify.checkup import judging
from notify.checkup.report import Finding, Grade, Step
from notify.exchange import Exchange, Failure, Phases
from notify.targets import Target, parse

NOW = dt.datetime(2026, 11, 29, 12, 0, 0, tzinfo=dt.UTC)
TIMEOUT = dt.timedelta(seconds=10)
HTTPS, HTTP = parse("https://hook.example/x"), parse("http://hook.example/x")
ALL_PHASES = Phases(dns_ms=1.4, connect_ms=2.6, tls_ms=3.0, answer_ms=4.0)


def answered(status: int = 204, **values: object) -> Exchange:
    given = {
        "status": status,
        "duration": dt.timedelta(milliseconds=11),
        "phases": ALL_PHASES,
        "peer": "192.0.2.7",
        "certificate_until": NOW + dt.timedelta(days=90),
        **values,
    }
    return Exchange(**given)  # type: ignore[arg-type]


def failed(failure: Failure, phases: Phases | None = None) -> Exchange:
    return Exchange(
        failure=failure,
        cause="because",
        duration=dt.timedelta(seconds=1),
        phases=phases or Phases(),
    )


def findings(
    exchange: Exchange, target: Target = HTTPS, *addresses: str
) -> dict[Step, Finding]:
    found = judging.of_event(
        exchange, target=target, addresses=addresses, timeout=TIMEOUT, now=NOW
    )
    return {finding.step: finding for finding in found}


def test_a_way_without_fault_is_told_with_its_times():
    found = findings(answered(), HTTPS, "192.0.2.7", "2001:db8::7")

    assert [(f.grade, f.message) for f in found.values()] == [
        (
            Grade.PASSED,
            "hook.example has the addresses 192.0.2.7, 2001:db8::7, and webhooks may reach them (1 ms)",
        ),
        (Grade.PASSED, "connected to 192.0.2.7 (3 ms)"),
        (Grade.PASSED, "the certificate is good for 90 more days (3 ms)"),
        (Grade.PASSED, "none"),
        (Grade.PASSED, "answers after 11 ms of the 10 s that it has"),
        (Grade.PASSED, "takes a signed event (HTTP 204)"),
    ]


@pytest.mark.parametrize(
    ("exchange", "step"),
    [
        (failed(Failure.INVALID), Step.DNS),
        (failed(Failure.BLOCKED), Step.DNS),
        (failed(Failure.DNS), Step.DNS),
        (failed(Failure.DEADLINE), Step.DNS),
        (failed(Failure.DEADLINE, Phases(dns_ms=1)), Step.DNS),
        (failed(Failure.CONNECT, Phases(connect_ms=1)), Step.CONNECT),
        (failed(Failure.DEADLINE, Phases(dns_ms=1, connect_ms=1)), Step.CONNECT),
        (failed(Failure.TLS, Phases(connect_ms=1, tls_ms=1)), Step.TLS),
        (failed(Failure.NETWORK, Phases(connect_ms=1, tls_ms=1)), Step.TLS),
        (failed(Failure.DEADLINE, ALL_PHASES), Step.LATENCY),
    ],
    ids=[
        "a URL that is refused",
        "an address that is refused",
        "an unknown name",
        "no time left",
        "a slow name server",
        "no connection",
        "a slow connection",
        "a bad certificate",
        "a broken handshake",
        "no answer",
    ],
)
def test_the_step_at_which_it_ended_has_failed_and_none_after_it_is_known(
    exchange: Exchange, step: Step
):
    found = findings(exchange)

    grades = [finding.grade for finding in found.values()]
    place = list(found).index(step)
    # The certificate was not looked at, and still it is known that the handshake was good.
    assert set(grades[:place]) <= {Grade.PASSED, Grade.UNKNOWN}
    assert found[step].grade is Grade.FAILED
    assert found[step].message == "because"
    assert set(grades[place + 1 : -1]) <= {Grade.UNKNOWN}
    assert found[Step.EVENT].grade is Grade.FAILED
    if step is not Step.LATENCY:
        assert found[Step.EVENT].message.endswith(f"event: it ended at {step}")


def test_an_answer_that_breaks_off_is_no_fault_of_the_way():
    found = findings(failed(Failure.NETWORK, ALL_PHASES))

    assert [f.grade for f in found.values()] == [
        Grade.PASSED,
        Grade.PASSED,
        Grade.PASSED,
        Grade.UNKNOWN,
        Grade.UNKNOWN,
        Grade.FAILED,
    ]


@pytest.mark.parametrize(
    ("days", "grade"), [(21, Grade.PASSED), (20, Grade.WARNING), (0, Grade.WARNING)]
)
def test_a_certificate_is_warned_of_three_weeks_before_its_end(days: int, grade: Grade):
    until = NOW + dt.timedelta(days=days, hours=1)
    found = findings(answered(certificate_until=until))[Step.TLS]

    assert found.grade is grade
    assert f" {days} more days" in found.message


def test_without_tls_the_events_can_be_read():
    found = findings(answered(certificate_until=None), HTTP)[Step.TLS]

    assert found.grade is Grade.WARNING
    assert "can read the events" in found.message


@pytest.mark.parametrize(
    ("milliseconds", "grade"), [(5_000, Grade.PASSED), (5_001, Grade.WARNING)]
)
def test_half_of_the_time_is_little(milliseconds: int, grade: Grade):
    took = dt.timedelta(milliseconds=milliseconds)
    assert findings(answered(duration=took))[Step.LATENCY].grade is grade


def test_a_refused_event_has_the_most_likely_reason_beside_it():
    refused = findings(answered(401))[Step.EVENT]
    skewed = findings(answered(401, date="Sun, 29 Nov 2026 12:10:00 GMT"))[Step.EVENT]
    lost = findings(answered(404))[Step.EVENT]

    assert refused.advice.startswith("does it have the current secret")
    assert (skewed.grade, skewed.advice) == (Grade.FAILED, "set its clock")
    assert "600 s ahead of ours" in skewed.message
    assert lost.advice == ""


def test_every_status_is_a_refusal_an_acceptance_or_neither():
    wrong = {}
    for status in range(200, 600):
        found = judging.of_refusal(Step.FORGED, answered(status), now=NOW)
        if status <= 299:
            expected = Grade.FAILED
        elif status in (408, 425, 429):
            expected = Grade.UNKNOWN
        elif 400 <= status <= 499:
            expected = Grade.PASSED
        else:
            expected = Grade.WARNING
        if found.grade is not expected:
            wrong[status] = found
    assert wrong == {}


def test_no_answer_says_neither_yes_nor_no():
    lost = failed(Failure.NETWORK, ALL_PHASES)

    assert judging.of_refusal(Step.OLD, lost, now=NOW).grade is Grade.UNKNOWN
    assert judging.of_duplicate(lost, now=NOW).grade is Grade.UNKNOWN
