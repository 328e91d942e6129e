from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.fernet import Fernet
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from notify import encryption, rotation
from notify.exceptions import EncryptionError, InvalidSecret, RotationRefused
from notify.models import AuditEntry, WebhookAttempt, WebhookEndpoint
from notify.rotation import Phase
from tests.notify.factories import SECRET, AttemptFactory, EndpointFactory

pytestmark = pytest.mark.django_db
NEW_SECRET = "the-next-secret-0123456789abcdef"
WHO = "alice"

Step = Callable[[WebhookEndpoint], object]
STEPS: dict[str, Step] = {
    "stage": lambda endpoint: rotation.stage(endpoint, actor=WHO),
    "promote": lambda endpoint: rotation.make_current(
        endpoint, rotation.staged_secret(endpoint), actor=WHO, proof="probe"
    ),
    "retire": lambda endpoint: rotation.retire(endpoint, actor=WHO),
    "abandon": lambda endpoint: rotation.abandon(endpoint, actor=WHO),
}


def staged() -> WebhookEndpoint:
    endpoint = EndpointFactory()
    rotation.stage(endpoint, NEW_SECRET, actor=WHO)
    return endpoint


def promoted() -> WebhookEndpoint:
    endpoint = staged()
    rotation.make_current(endpoint, NEW_SECRET, actor=WHO, proof="probe")
    return endpoint


def delivered(endpoint: WebhookEndpoint, **values: object) -> None:
    AttemptFactory(
        endpoint=endpoint,
        verdict=WebhookAttempt.Verdict.COMPLETED,
        finished_at=timezone.now(),
        **values,
    )


def secrets_in_the_table(endpoint: WebhookEndpoint) -> list[str]:
    return rotation.signing_secrets(WebhookEndpoint.objects.get(pk=endpoint.pk))


def test_step_by_step_the_new_secret_takes_the_place_of_the_old_one():
    endpoint = EndpointFactory()
    assert rotation.of(endpoint).phase is Phase.SETTLED
    assert rotation.signing_secrets(endpoint) == [SECRET]

    rotation.stage(endpoint, NEW_SECRET, actor=WHO)
    assert rotation.of(endpoint).phase is Phase.STAGED
    assert rotation.of(endpoint).since == endpoint.staged_at is not None
    assert rotation.signing_secrets(endpoint) == [SECRET, NEW_SECRET]

    rotation.make_current(endpoint, NEW_SECRET, actor=WHO, proof="probe")
    assert rotation.of(endpoint).phase is Phase.RETIRING
    assert rotation.of(endpoint).since == endpoint.promoted_at is not None
    assert rotation.signing_secrets(endpoint) == [NEW_SECRET, SECRET]

    rotation.retire(endpoint, actor=WHO)
    assert rotation.of(endpoint).phase is Phase.SETTLED
    assert rotation.signing_secrets(endpoint) == [NEW_SECRET]

    assert secrets_in_the_table(endpoint) == [NEW_SECRET]
    entries = AuditEntry.objects.order_by("id")
    assert [(e.actor, e.action) for e in entries] == [
        (WHO, "webhook.secret_staged"),
        (WHO, "webhook.secret_promoted"),
        (WHO, "webhook.secret_retired"),
    ]
    assert entries[1].data == {"target": endpoint.target, "proof": "probe"}


def test_a_staged_secret_can_be_taken_back():
    endpoint = staged()

    rotation.abandon(endpoint, actor=WHO)

    assert secrets_in_the_table(endpoint) == [SECRET]
    assert rotation.of(endpoint) == rotation.Rotation(phase=Phase.SETTLED)
    assert AuditEntry.objects.latest("id").action == "webhook.secret_abandoned"


def test_a_secret_is_made_where_none_is_given():
    endpoint = EndpointFactory()

    made = rotation.stage(endpoint, actor=WHO)

    assert secrets_in_the_table(endpoint) == [SECRET, made]


@pytest.mark.parametrize(
    ("start", "step", "reason"),
    [
        (staged, "stage", "staged already: promote it, or abandon it first"),
        (promoted, "stage", "the secret before this one still signs: retire it"),
        (EndpointFactory, "promote", "no new secret is staged: rotate first"),
        (promoted, "promote", "no new secret is staged: rotate first"),
        (EndpointFactory, "retire", "only the current one signs"),
        (staged, "retire", "promote the staged one first"),
        (EndpointFactory, "abandon", "no new secret is staged$"),
        (promoted, "abandon", "the new one has been promoted"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value),
)
def test_a_step_out_of_order_changes_nothing_and_says_what_to_do(
    start: Callable[[], WebhookEndpoint], step: str, reason: str
):
    endpoint = start()
    before = secrets_in_the_table(endpoint)
    entries = AuditEntry.objects.count()

    with pytest.raises(RotationRefused, match=reason):
        STEPS[step](endpoint)

    assert secrets_in_the_table(endpoint) == before
    assert AuditEntry.objects.count() == entries


def test_every_step_says_that_the_endpoint_is_gone():
    endpoint = EndpointFactory()
    WebhookEndpoint.objects.all().delete()

    for step in STEPS.values():
        with pytest.raises(RotationRefused, match=r"deleted meanwhile|is staged"):
            step(endpoint)
    rotation.learn(endpoint, SECRET, real=True)


def test_a_secret_that_breaks_a_rule_or_is_there_already_is_not_staged():
    endpoint = EndpointFactory()

    with pytest.raises(InvalidSecret, match="24 to 64 characters"):
        rotation.stage(endpoint, "short", actor=WHO)
    with pytest.raises(InvalidSecret, match="that it has already"):
        rotation.stage(endpoint, f"{SECRET}\n", actor=WHO)

    assert secrets_in_the_table(endpoint) == [SECRET]


def test_what_was_proved_is_promoted_and_no_other():
    endpoint = staged()
    rotation.abandon(endpoint, actor=WHO)
    rotation.stage(endpoint, actor="bob")

    with pytest.raises(RotationRefused, match="changed meanwhile"):
        rotation.make_current(endpoint, NEW_SECRET, actor=WHO, proof="probe")

    assert secrets_in_the_table(endpoint)[0] == SECRET


def test_what_is_decided_is_decided_on_the_row_and_not_on_an_old_copy_of_it():
    endpoint = staged()
    old_copy = WebhookEndpoint.objects.get(pk=endpoint.pk)
    rotation.make_current(endpoint, NEW_SECRET, actor=WHO, proof="probe")

    with pytest.raises(RotationRefused, match="has been promoted"):
        rotation.abandon(old_copy, actor="bob")
    rotation.retire(old_copy, actor="bob")

    assert secrets_in_the_table(endpoint) == [NEW_SECRET]


@pytest.mark.django_db(transaction=True)
def test_of_two_who_rotate_at_the_same_time_one_is_refused():
    endpoint = EndpointFactory()
    at_once = threading.Barrier(2)

    def rotate(number: int) -> str:
        mine = WebhookEndpoint.objects.get(pk=endpoint.pk)
        at_once.wait(timeout=10)
        try:
            return rotation.stage(mine, actor=f"user{number}")
        except RotationRefused:
            return ""
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        made = sorted(pool.map(rotate, range(2)))

    assert made[0] == ""
    assert secrets_in_the_table(endpoint) == [SECRET, made[1]]
    assert AuditEntry.objects.count() == 1


def test_the_staged_secret_is_promoted_by_a_delivery_that_it_alone_has_signed():
    endpoint = staged()

    rotation.learn(endpoint, SECRET, real=True)
    assert secrets_in_the_table(endpoint) == [SECRET, NEW_SECRET]
    rotation.learn(endpoint, NEW_SECRET, real=True)

    assert secrets_in_the_table(endpoint) == [NEW_SECRET, SECRET]
    entry = AuditEntry.objects.latest("id")
    assert (entry.actor, entry.action) == ("system", "webhook.secret_promoted")
    assert entry.data["proof"] == "delivery"


def test_the_old_secret_is_retired_when_real_deliveries_have_followed():
    endpoint = promoted()
    for followed in range(3):
        rotation.learn(endpoint, NEW_SECRET, real=True)
        assert secrets_in_the_table(endpoint) == [NEW_SECRET, SECRET]
        assert rotation.of(endpoint).followed == followed
        delivered(endpoint)

    rotation.learn(endpoint, NEW_SECRET, real=False)
    assert secrets_in_the_table(endpoint) == [NEW_SECRET, SECRET]
    rotation.learn(endpoint, NEW_SECRET, real=True)

    assert secrets_in_the_table(endpoint) == [NEW_SECRET]
    assert AuditEntry.objects.latest("id").action == "webhook.secret_retired"


def test_neither_earlier_deliveries_nor_test_events_nor_failures_count():
    endpoint = EndpointFactory()
    for _ in range(3):
        delivered(endpoint)
    endpoint.set_secret(NEW_SECRET)
    endpoint.save()
    rotation.stage(endpoint, SECRET, actor=WHO)
    rotation.make_current(endpoint, SECRET, actor=WHO, proof="probe")

    delivered(endpoint, job_id=None)
    delivered(EndpointFactory())
    AttemptFactory(endpoint=endpoint, verdict=WebhookAttempt.Verdict.RETRY)

    assert rotation.of(endpoint).followed == 0


def test_a_receiver_that_still_has_the_old_secret_has_the_count_begin_again():
    endpoint = promoted()
    for _ in range(3):
        delivered(endpoint)

    rotation.learn(endpoint, SECRET, real=True)

    endpoint.refresh_from_db()
    assert rotation.of(endpoint).followed == 0
    rotation.learn(endpoint, NEW_SECRET, real=True)
    assert secrets_in_the_table(endpoint) == [NEW_SECRET, SECRET]


def test_a_secret_that_is_set_by_hand_ends_the_rotation():
    for rotating in (staged(), promoted()):
        rotating.set_secret("set-by-hand-0123456789abcdefghij")
        rotating.save()

        assert secrets_in_the_table(rotating) == ["set-by-hand-0123456789abcdefghij"]
        assert rotating.promoted_at is not None
        assert rotation.of(rotating) == rotation.Rotation(phase=Phase.SETTLED)
    assert EndpointFactory().promoted_at is None


@pytest.mark.parametrize("start", [staged, promoted], ids=["staged", "promoted"])
def test_saving_puts_both_secrets_under_the_first_key(
    start: Callable[[], WebhookEndpoint], settings: Settings
):
    endpoint = start()
    secrets = secrets_in_the_table(endpoint)
    new_key = encryption.new_key()
    settings.ACW_ENCRYPTION_KEYS = [new_key, *settings.ACW_ENCRYPTION_KEYS]
    WebhookEndpoint.objects.get(pk=endpoint.pk).save()

    settings.ACW_ENCRYPTION_KEYS = [new_key]

    assert secrets_in_the_table(endpoint) == secrets


def test_without_its_key_nothing_is_staged_promoted_or_signed(settings: Settings):
    endpoint = staged()
    untouched = EndpointFactory()
    settings.ACW_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]

    with pytest.raises(EncryptionError):
        rotation.stage(untouched, actor=WHO)
    with pytest.raises(EncryptionError):
        rotation.staged_secret(endpoint)
    with pytest.raises(EncryptionError):
        rotation.signing_secrets(endpoint)


def test_a_step_is_logged_once_it_is_committed_and_no_secret_with_it(
    caplog: pytest.LogCaptureFixture,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
):
    caplog.set_level("INFO")
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        endpoint = promoted()
        assert "webhook.secret_rotation" not in caplog.text

    told = [r for r in caplog.records if r.message == "webhook.secret_rotation"]
    assert [r.__dict__["step"] for r in told] == ["staged", "promoted"]
    logged = repr([record.__dict__ for record in caplog.records])
    rows = repr([*AuditEntry.objects.values(), *WebhookEndpoint.objects.values()])
    for secret in (SECRET, NEW_SECRET):
        assert secret not in logged + rows + repr(endpoint)
