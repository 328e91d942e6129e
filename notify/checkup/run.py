"""Checking a receiver up: the requests are sent, each leaves its row, and the audit keeps what was found."""

from __future__ import annotations

import time
from collections.abc import Sequence

from django.conf import settings
from django.db.models.functions import Now
from django.utils import timezone

from jobs.identifiers import uuid7
from notify import audit, delivery, rotation, targets, topics
from notify.checkup import judging
from notify.checkup.probes import Probe, Probes
from notify.checkup.report import Finding, Grade, Report, Step
from notify.dialing import AddressInfo, Resolver, look_up
from notify.exceptions import CheckupRefused
from notify.exchange import Exchange
from notify.models import WebhookAttempt, WebhookEndpoint

HOW_TO_AGREE = "its owner has to agree, since it is sent requests that it must refuse: tick “May be checked up” on its page then"


def check_up(
    endpoint: WebhookEndpoint, *, actor: str, resolver: Resolver = look_up
) -> Report:
    """Send the endpoint a genuine event, the three that it must refuse, and the genuine one again; say what that shows.

    Each is one POST within the endpoint's timeout, also where it or all webhooks are switched off, and leaves a row in
    ``webhook_attempts`` without a job. Where the genuine event is not taken, nothing else is sent: whoever refuses
    everything refuses forgeries, too. Nor is anything after a request without an answer.

    Must not be called inside a transaction. Raises :class:`~notify.exceptions.CheckupRefused` where the endpoint's
    owner has not agreed, ``InvalidUrl``, and ``EncryptionError`` where its secret or its headers cannot be read.
    """
    if not endpoint.checkup_allowed:
        raise CheckupRefused(f"{endpoint.name} may not be checked up: {HOW_TO_AGREE}")
    findings = _Checkup(endpoint, resolver).findings()
    report = Report(
        endpoint=endpoint.name, target=endpoint.target, findings=tuple(findings)
    )
    audit.record(
        actor,
        "webhook.checked_up",
        target=f"webhook:{endpoint.name}",
        data={
            "target": report.target,
            "ok": report.ok,
            "findings": {f.step.value: f.grade.value for f in report.findings},
        },
    )
    return report


class _Checkup:
    """One check-up of one endpoint, to be used once."""

    def __init__(self, endpoint: WebhookEndpoint, resolver: Resolver) -> None:
        self._endpoint = endpoint
        self._target = targets.parse(endpoint.url)
        self._resolver = resolver
        self._addresses: list[str] = []
        self._sent = 0
        self._own_headers = endpoint.own_headers()
        self._probes = Probes(endpoint.name, rotation.signing_secrets(endpoint))

    def findings(self) -> list[Finding]:
        event_id = uuid7()
        exchange = self._post(Step.EVENT, self._probes.genuine(event_id, _timestamp()))
        found = judging.of_event(
            exchange,
            target=self._target,
            addresses=self._addresses,
            timeout=self._endpoint.effective_timeout,
            now=timezone.now(),
        )
        if found[-1].grade is not Grade.PASSED:
            return [*found, *_rest(found, "it would not take what is genuine either")]
        for step in judging.REFUSED:
            exchange = self._post(step, self._wrong(step))
            found.append(judging.of_refusal(step, exchange, now=timezone.now()))
            if exchange.status is None:
                return [*found, *_rest(found, f"no answer at {step}")]
        again = self._probes.genuine(event_id, _timestamp())
        exchange = self._post(Step.DUPLICATE, again)
        return [*found, judging.of_duplicate(exchange, now=timezone.now())]

    def _wrong(self, step: Step) -> Probe:
        # An id of its own: one that is known already may be answered 2xx without being looked at.
        event_id, timestamp = uuid7(), _timestamp()
        if step is Step.FORGED:
            return self._probes.forged(event_id, timestamp)
        if step is Step.OLD:
            return self._probes.old(event_id, timestamp)
        return self._probes.altered(event_id, timestamp)

    def _post(self, step: Step, probe: Probe) -> Exchange:
        # Not at the top: it loads requests, which a web server that checks nothing up need not hold.
        from notify import outbound

        self._sent += 1
        attempt = WebhookAttempt.objects.create(
            endpoint=self._endpoint, topic=topics.TEST.name, number=self._sent
        )
        exchange = outbound.post(
            self._endpoint.url,
            body=probe.body,
            headers=probe.headers,
            extra=self._own_headers,
            timeout=self._endpoint.effective_timeout,
            allowed=settings.NOTIFY_WEBHOOK_ALLOW_NETWORKS,
            ca_bundle=settings.NOTIFY_WEBHOOK_CA_BUNDLE,
            resolver=self._look_up,
        )
        _close(attempt, step, exchange)
        return exchange

    def _look_up(self, host: str, port: int) -> Sequence[AddressInfo]:
        answers = self._resolver(host, port)
        self._addresses = list(dict.fromkeys(answer[4][0] for answer in answers))
        return answers


def _close(attempt: WebhookAttempt, step: Step, exchange: Exchange) -> None:
    judgement = delivery.judge(exchange, now=timezone.now())
    phases = exchange.phases
    WebhookAttempt.objects.filter(pk=attempt.pk).update(
        finished_at=Now(),
        verdict=judgement.verdict.value,
        status=exchange.status,
        cause=f"check-up, {step}: {judgement.cause or 'accepted'}",
        failure=exchange.failure or "",
        duration=exchange.duration,
        dns_ms=phases.dns_ms,
        connect_ms=phases.connect_ms,
        tls_ms=phases.tls_ms,
        answer_ms=phases.answer_ms,
        peer=exchange.peer,
    )


def _rest(found: Sequence[Finding], reason: str) -> list[Finding]:
    """What stands for the steps that were not come to."""
    reached = {finding.step for finding in found}
    return [judging.not_tried(step, reason) for step in Step if step not in reached]


def _timestamp() -> int:
    """Unix seconds now, by this host's clock, as every delivery is signed."""
    return int(time.time())
