from __future__ import annotations

import datetime as dt

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ValidationError
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from notify.exceptions import (
    EncryptionError,
    InvalidHeader,
    InvalidSecret,
    InvalidUrl,
)
from notify.models import WebhookEndpoint
from tests.notify.factories import SECRET, EndpointFactory

pytestmark = pytest.mark.django_db


def test_the_secret_is_kept_encrypted_and_shown_nowhere():
    endpoint = EndpointFactory(secret=SECRET)
    with connection.cursor() as cursor:
        cursor.execute("SELECT webhook_endpoints::text FROM webhook_endpoints")
        [(row,)] = cursor.fetchall()

    assert SECRET not in row
    assert SECRET not in repr(endpoint.__dict__)
    assert WebhookEndpoint.objects.get().signing_secret() == SECRET


def test_neither_url_nor_secret_is_in_what_represents_an_endpoint():
    endpoint = EndpointFactory()

    assert "SECRET-TOKEN" not in f"{endpoint!r} {endpoint} {endpoint.target}"
    assert endpoint.target.startswith("https://hooks.example #")


@pytest.mark.parametrize("name", ["a\nb", "a\0b", "a\udce9", "a\u202eb"], ids=ascii)
def test_a_name_is_one_printable_line(name: str):
    endpoint = EndpointFactory.build(name=name, encrypted_secret="x")

    with pytest.raises(ValidationError, match="one line of printable characters"):
        endpoint.full_clean(validate_unique=False)


def test_a_url_that_got_into_the_table_otherwise_is_not_shown_either():
    endpoint = EndpointFactory()
    WebhookEndpoint.objects.update(url="https://user:pass@host/")
    endpoint.refresh_from_db()

    assert endpoint.target == "an invalid URL"


def test_saving_puts_the_secret_under_the_first_key(settings: Settings):
    [old], new = settings.ACW_ENCRYPTION_KEYS, Fernet.generate_key().decode()
    endpoint = EndpointFactory()
    settings.ACW_ENCRYPTION_KEYS = [new, old]
    endpoint.save()

    settings.ACW_ENCRYPTION_KEYS = [new]
    assert WebhookEndpoint.objects.get().signing_secret() == SECRET


def test_an_endpoint_whose_secret_cannot_be_read_can_still_be_switched_off(
    settings: Settings,
):
    endpoint = EndpointFactory()
    settings.ACW_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    endpoint.enabled = False
    endpoint.save()

    assert not WebhookEndpoint.objects.get().enabled
    with pytest.raises(EncryptionError):
        endpoint.signing_secret()


def test_a_secret_that_breaks_the_rules_is_not_kept():
    with pytest.raises(InvalidSecret):
        WebhookEndpoint().set_secret("short")


def test_a_url_is_checked_at_every_save_and_kept_in_its_plain_form():
    assert EndpointFactory(url="https://HOST/x").url == "https://host/x"
    with pytest.raises(InvalidUrl):
        EndpointFactory(url="ftp://host/")
    with pytest.raises(ValidationError) as refused:
        WebhookEndpoint(name="x", url="ftp://host/").full_clean()
    assert "url" in refused.value.message_dict


def test_updated_at_is_the_databases_time_of_the_last_save():
    endpoint = EndpointFactory()
    long_ago = timezone.now() - dt.timedelta(days=9)
    WebhookEndpoint.objects.update(updated_at=long_ago)
    endpoint.save()

    assert endpoint.updated_at > long_ago


def test_its_own_headers_are_kept_encrypted_and_shown_nowhere():
    endpoint = EndpointFactory()
    endpoint.set_headers({"Authorization": "Bearer HEADER-SECRET"})
    endpoint.save()
    with connection.cursor() as cursor:
        cursor.execute("SELECT encrypted_headers FROM webhook_endpoints")
        [(stored,)] = cursor.fetchall()

    assert "HEADER-SECRET" not in f"{stored} {endpoint.__dict__!r}"
    read = WebhookEndpoint.objects.get().own_headers()
    assert read == {"Authorization": "Bearer HEADER-SECRET"}


def test_without_headers_of_its_own_there_is_nothing_to_decrypt(settings: Settings):
    endpoint = EndpointFactory()
    settings.ACW_ENCRYPTION_KEYS = []

    assert endpoint.own_headers() == WebhookEndpoint().own_headers() == {}
    endpoint.set_headers({})
    assert endpoint.encrypted_headers == ""


def test_saving_puts_the_headers_under_the_first_key(settings: Settings):
    [old], new = settings.ACW_ENCRYPTION_KEYS, Fernet.generate_key().decode()
    endpoint = EndpointFactory()
    endpoint.set_headers({"X-T": "7"})
    endpoint.save()
    settings.ACW_ENCRYPTION_KEYS = [new, old]
    endpoint.save()

    settings.ACW_ENCRYPTION_KEYS = [new]
    assert WebhookEndpoint.objects.get().own_headers() == {"X-T": "7"}


def test_a_header_that_breaks_a_rule_is_not_kept():
    with pytest.raises(InvalidHeader):
        WebhookEndpoint().set_headers({"Host": "elsewhere"})


def test_its_own_timeout_comes_before_the_settings(settings: Settings):
    settings.NOTIFY_WEBHOOK_TIMEOUT = dt.timedelta(seconds=7)

    assert EndpointFactory().effective_timeout == dt.timedelta(seconds=7)
    own = EndpointFactory(timeout=dt.timedelta(seconds=2))
    assert own.effective_timeout == dt.timedelta(seconds=2)


def test_a_timeout_that_has_become_too_long_for_the_lease_is_cut(settings: Settings):
    endpoint = EndpointFactory(timeout=dt.timedelta(seconds=40))
    settings.JOBS_JOB_REAPER_LEASE_TIMEOUT = dt.timedelta(seconds=30)

    assert endpoint.effective_timeout == dt.timedelta(seconds=15)


@pytest.mark.parametrize(
    ("lease", "seconds", "accepted"),
    [
        (300, 1, True),
        (300, 60, True),
        (300, 0.9, False),
        (300, 60.1, False),
        (30, 15, True),
        (30, 15.1, False),
    ],
)
def test_a_timeout_is_a_second_to_a_minute_and_at_most_half_of_the_lease(
    settings: Settings, lease: float, seconds: float, accepted: bool
):
    settings.JOBS_JOB_REAPER_LEASE_TIMEOUT = dt.timedelta(seconds=lease)
    endpoint = EndpointFactory(timeout=dt.timedelta(seconds=seconds))

    try:
        endpoint.full_clean()
    except ValidationError as refused:
        problems = refused.message_dict
    else:
        problems = {}
    assert list(problems) == ([] if accepted else ["timeout"])
