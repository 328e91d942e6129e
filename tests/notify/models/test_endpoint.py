from __future__ import annotations

import datetime as dt

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ValidationError
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from notify.exceptions import EncryptionError, InvalidSecret, InvalidUrl
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
