"""All that is encrypted, put under the first of the encryption keys: the last step before an older key is taken out."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db import transaction

from notify import audit, encryption
from notify.exceptions import EncryptionError
from notify.models import WebhookEndpoint
from notify.models.endpoint import ENCRYPTED


@dataclass(kw_only=True, slots=True)
class Reencrypted:
    """The names of the endpoints that are under the first key now, and of those that no key decrypts, which stay as they are."""

    done: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


def reencrypt(*, actor: str) -> Reencrypted:
    """Renew what each endpoint has encrypted, audited, under the lock of its row.

    Raises :class:`~notify.exceptions.EncryptionError` where there is no key at all.
    """
    encryption.encrypt("")  # no endpoint is to blame for a setting that is empty
    found = Reencrypted()
    for pk in WebhookEndpoint.objects.values_list("pk", flat=True):
        with transaction.atomic():
            locked = WebhookEndpoint.objects.select_for_update(no_key=True)
            endpoint = locked.filter(pk=pk).first()
            if endpoint is None:
                continue
            try:
                values = _renewed(endpoint)
            except EncryptionError:
                found.unreadable.append(endpoint.name)
                continue
            # Not save(), which would say that somebody has changed it.
            WebhookEndpoint.objects.filter(pk=pk).update(**values)
            audit.record(
                actor,
                "webhook.reencrypted",
                target=f"webhook:{endpoint.name}",
                data={"target": endpoint.target},
            )
        found.done.append(endpoint.name)
    return found


def _renewed(endpoint: WebhookEndpoint) -> dict[str, str]:
    tokens = {name: getattr(endpoint, name) for name in ENCRYPTED}
    for token in filter(None, tokens.values()):
        encryption.decrypt(token)
    return {name: token and encryption.renew(token) for name, token in tokens.items()}
