from __future__ import annotations

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from notify import encryption, rotation
from notify.exceptions import EncryptionError
from notify.models import AuditEntry, WebhookEndpoint
from notify.reencrypting import reencrypt
from tests.notify.factories import SECRET, EndpointFactory

pytestmark = pytest.mark.django_db
NEW_SECRET = "the-next-secret-0123456789abcdef"


def test_afterwards_the_first_key_alone_reads_all(settings: Settings):
    endpoint = EndpointFactory(name="chat")
    endpoint.set_headers({"X-T": "7"})
    endpoint.save()
    rotation.stage(endpoint, NEW_SECRET, actor="alice")
    changed = WebhookEndpoint.objects.get().updated_at
    new = encryption.new_key()
    settings.ACW_ENCRYPTION_KEYS = [new, *settings.ACW_ENCRYPTION_KEYS]

    found = reencrypt(actor="alice")

    assert (found.done, found.unreadable) == (["chat"], [])
    settings.ACW_ENCRYPTION_KEYS = [new]
    endpoint.refresh_from_db()
    assert rotation.signing_secrets(endpoint) == [SECRET, NEW_SECRET]
    assert endpoint.own_headers() == {"X-T": "7"}
    assert endpoint.updated_at == changed
    entry = AuditEntry.objects.latest("id")
    assert (entry.actor, entry.action) == ("alice", "webhook.reencrypted")


def test_what_no_key_decrypts_stays_as_it_is_and_is_named(settings: Settings):
    lost = EndpointFactory(name="lost")
    settings.ACW_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    EndpointFactory(name="well")

    found = reencrypt(actor="alice")

    assert (found.done, found.unreadable) == (["well"], ["lost"])
    before = lost.encrypted_secret
    lost.refresh_from_db()
    assert lost.encrypted_secret == before


def test_without_a_key_no_endpoint_is_blamed(settings: Settings):
    EndpointFactory()
    settings.ACW_ENCRYPTION_KEYS = []

    with pytest.raises(EncryptionError, match="ACW_ENCRYPTION_KEYS is empty"):
        reencrypt(actor="alice")
