"""Secrets at rest: Fernet (AES-128-CBC and HMAC-SHA256) under the keys of ``ACW_ENCRYPTION_KEYS``.

The first key encrypts, all of them decrypt, so that a new key is put in front, and the old one
dropped once everything has been saved again.

Its library is imported where it is used: it takes 7 MiB, and a worker that delivers no webhook does without.
"""

from __future__ import annotations

import base64
import functools
from typing import TYPE_CHECKING

from django.conf import settings

from notify.exceptions import EncryptionError

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

_KEY_BYTES = 32


def new_key() -> str:
    """A key of its own for ``ACW_ENCRYPTION_KEYS``."""
    from cryptography.fernet import Fernet

    return Fernet.generate_key().decode("ascii")


def is_key(text: str) -> bool:
    """Whether Fernet takes ``text`` for a key; asked at every start, so without the library."""
    try:
        return len(base64.urlsafe_b64decode(text)) == _KEY_BYTES
    except ValueError:
        return False


def encrypt(text: str) -> str:
    """The token to store for ``text``; raises :class:`~notify.exceptions.EncryptionError` without a key."""
    return _keys().encrypt(text.encode()).decode("ascii")


def decrypt(token: str) -> str:
    """The text of ``token``; raises :class:`~notify.exceptions.EncryptionError` where no key decrypts it."""
    from cryptography.fernet import InvalidToken

    try:
        return _decrypted(token, tuple(settings.ACW_ENCRYPTION_KEYS))
    except InvalidToken:
        raise EncryptionError(
            "none of the keys in ACW_ENCRYPTION_KEYS decrypts the stored secret: add the key that it was "
            "encrypted with, or set the secret anew"
        ) from None


def renew(token: str) -> str:
    """``token`` under the first key; as it is where no key decrypts it, so that the row can still be saved."""
    from cryptography.fernet import InvalidToken

    try:
        return _keys().rotate(token.encode()).decode("ascii")
    except (InvalidToken, EncryptionError):
        return token


@functools.lru_cache(maxsize=128)
def _decrypted(token: str, keys: tuple[str, ...]) -> str:
    # Kept, since each delivery asks; the keys are in memory too. They belong to what was asked, so that a key that
    # was taken out decrypts nothing any more.
    return _multi_fernet(keys).decrypt(token.encode()).decode()


def _keys() -> MultiFernet:
    return _multi_fernet(tuple(settings.ACW_ENCRYPTION_KEYS))


def _multi_fernet(keys: tuple[str, ...]) -> MultiFernet:
    from cryptography.fernet import Fernet, MultiFernet

    if not keys:
        raise EncryptionError("ACW_ENCRYPTION_KEYS is empty: set it to a Fernet key")
    return MultiFernet([Fernet(key) for key in keys])
