from __future__ import annotations

import pytest
from django.core.management import CommandError
from pytest_django import Settings

from notify import encryption
from notify.models import WebhookEndpoint
from tests.notify.commands.calling import webhook
from tests.notify.factories import SECRET, EndpointFactory

pytestmark = pytest.mark.django_db


def test_the_old_key_can_be_taken_out_then(settings: Settings):
    EndpointFactory(name="chat")
    new = encryption.new_key()
    settings.ACW_ENCRYPTION_KEYS = [new, *settings.ACW_ENCRYPTION_KEYS]

    assert "No other key is needed" in webhook("reencrypt")

    settings.ACW_ENCRYPTION_KEYS = [new]
    assert WebhookEndpoint.objects.get().signing_secret() == SECRET


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([encryption.new_key()], "no key decrypts all that is stored for: chat"),
        ([], "ACW_ENCRYPTION_KEYS is empty"),
    ],
    ids=["another", "none"],
)
def test_what_cannot_be_read_is_a_failure(
    settings: Settings, keys: list[str], message: str
):
    EndpointFactory(name="chat")
    settings.ACW_ENCRYPTION_KEYS = keys

    with pytest.raises(CommandError, match=message) as failed:
        webhook("reencrypt")

    assert failed.value.returncode == 1
