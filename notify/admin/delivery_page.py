"""What a delivery's page says below its facts: what went wrong, each attempt, the body, and how to send it by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from jobs.display import payload_text, seen
from jobs.markup import NOTHING, badge, block, folded
from jobs.models import LIVE, Status
from notify import standing
from notify.curl import command_for
from notify.exceptions import EncryptionError
from notify.explanations import explain
from notify.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint

ATTEMPTS_SHOWN = 50

_HEADERS = ("began", "no.", "verdict", "answer", "milliseconds", "peer")
_BY_HAND = (
    "For a shell with curl and openssl; type read -rs SECRET first, and the endpoint's secret. It is signed when it is run, "
    "shows the receiver's answer, and changes nothing here. Who else is logged in there sees the secret among the processes."
)
_BADGES = {"retry": "failed", "permanent": "failed", "repeated": "failed"}
"""The states of jobs whose colours go with a verdict's."""
_PHASES = (
    ("looking up", "dns_ms"),
    ("connecting", "connect_ms"),
    ("TLS", "tls_ms"),
    ("answer", "answer_ms"),
)


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading with text, or with a table whose first row is ``headers``."""

    name: str
    title: str
    text: SafeString | str = ""
    headers: tuple[str, ...] = ()
    rows: list[list[Any]] = field(default_factory=list)

    @property
    def lines(self) -> list[list[tuple[str, Any]]]:
        """The cells, each with its column's header, which narrow screens show beside it."""
        return [list(zip(self.headers, row, strict=True)) for row in self.rows]


def sections(
    delivery: WebhookDelivery, *, may_resend: bool, may_see_url: bool
) -> list[Section]:
    """The page's, in order.

    How to send it by hand is in them, with the body as it is, for who may do that here; the receiver's URL, and which headers
    it gets, only with ``may_see_url``.
    """
    attempts = list(
        WebhookAttempt.objects.filter(job_id=delivery.pk).order_by("-id")[
            :ATTEMPTS_SHOWN
        ]
    )
    return [
        *_explanation(delivery, attempts),
        Section(
            name="attempts",
            title="Attempts, newest first",
            text="" if attempts else "None yet.",
            headers=_HEADERS,
            rows=[_attempt(attempt) for attempt in attempts],
        ),
        Section(name="body", title="Body", text=_body(delivery)),
        *(_by_hand(delivery, may_see_url=may_see_url) if may_resend else []),
    ]


def _explanation(
    delivery: WebhookDelivery, attempts: list[WebhookAttempt]
) -> list[Section]:
    """What the last attempt came to, and what it waits for, in plain words; nothing where there is neither."""
    endpoint = endpoint_of(delivery)
    said = []
    if attempts:
        last = explain(
            attempts[0],
            goes_on=delivery.status in LIVE,
            resendable=endpoint is not None
            and delivery.status in (Status.DEAD, Status.COMPLETED),
            secret_changed_at=endpoint.promoted_at if endpoint else None,
        )
        said.append(
            format_html("<p><strong>{}</strong></p><p>{}</p>", last.what, last.to_do)
        )
    if endpoint is None:
        said.append(
            format_html(
                "<p>{}</p>", "Its endpoint was deleted: there is nowhere to send it."
            )
        )
    elif delivery.status == Status.PENDING and (
        waits := standing.why_it_waits(endpoint)
    ):
        said.append(format_html("<p>It waits: {}.</p>", waits))
    if not said:
        return []
    text = format_html_join("", "{}", ([part] for part in said))
    return [Section(name="explanation", title="What happened", text=text)]


def endpoint_of(delivery: WebhookDelivery) -> WebhookEndpoint | None:
    """The receiver; None where it was deleted, or the row was put there by hand and names none."""
    number = delivery.ref_id or ""
    if not number.isdecimal():
        return None
    return WebhookEndpoint.objects.filter(pk=number).first()


def _attempt(attempt: WebhookAttempt) -> list[Any]:
    answer = attempt.cause or (f"HTTP {attempt.status}" if attempt.status else NOTHING)
    return [
        attempt.started_at,
        attempt.number,
        _verdict(attempt),
        format_html("{}{}", answer, folded("What it said", seen(attempt.excerpt))),
        _milliseconds(attempt),
        attempt.peer or NOTHING,
    ]


def _verdict(attempt: WebhookAttempt) -> SafeString:
    verdict = badge(
        _BADGES.get(attempt.verdict, attempt.verdict),
        WebhookAttempt.Verdict(attempt.verdict).label.lower(),
    )
    if attempt.superseded_by is None:
        return format_html("{}{}", verdict, " as a trial" if attempt.trial else "")
    url = reverse("admin:notify_webhookdelivery_change", args=[attempt.superseded_by])
    return format_html('{} by <a href="{}">a later event</a>', verdict, url)


def _milliseconds(attempt: WebhookAttempt) -> SafeString | str:
    if attempt.duration is None:
        return NOTHING
    phases = ", ".join(
        f"{label} {value:.1f}"
        for label, name in _PHASES
        if (value := getattr(attempt, name)) is not None
    )
    total = f"{attempt.duration.total_seconds() * 1000:.0f}"
    if not phases:
        return total
    return format_html('{} <span class="phases">{}</span>', total, phases)


def _body(delivery: WebhookDelivery) -> SafeString | str:
    # As text: some JSONB cannot be read by Python, and shows all the same.
    [(body, payload)] = WebhookDelivery.objects.filter(pk=delivery.pk).values_list(
        KeyTextTransform("body", "payload"), Cast("payload", TextField())
    )
    return block(payload_text(body or payload))


def _by_hand(delivery: WebhookDelivery, *, may_see_url: bool) -> list[Section]:
    """The request as a command; nothing where the row is no delivery's that could be sent."""
    topic, body = (
        WebhookDelivery.objects.filter(pk=delivery.pk)
        .values_list(
            KeyTextTransform("topic", "payload"), KeyTextTransform("body", "payload")
        )
        .get()
    )
    endpoint = endpoint_of(delivery)
    if endpoint is None or not topic or not body:
        return []
    command = command_for(
        endpoint.url if may_see_url else None,
        topic=topic,
        event_id=delivery.pk,
        body=body,
        header_names=_header_names(endpoint) if may_see_url else (),
    )
    text = format_html("<p>{}</p>{}", _BY_HAND, folded("The command", command))
    return [Section(name="by-hand", title="Send it by hand", text=text)]


def _header_names(endpoint: WebhookEndpoint) -> Iterable[str]:
    try:
        return endpoint.own_headers()
    except EncryptionError:
        return ()
