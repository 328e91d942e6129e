from __future__ import annotations

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from notify import encryption
from notify.exceptions import EncryptionError


def new_key() -> str:
    return Fernet.generate_key().decode()


def test_what_is_encrypted_does_not_show_the_text_and_comes_back():
    token = encryption.encrypt("the text")

    assert "the text" not in token
    assert encryption.decrypt(token) == "the text"


def test_the_first_key_encrypts_and_all_decrypt(settings: Settings):
    old, new = new_key(), new_key()
    settings.ACW_ENCRYPTION_KEYS = [old]
    under_old = encryption.encrypt("x")
    settings.ACW_ENCRYPTION_KEYS = [new, old]
    under_new = encryption.encrypt("x")

    assert encryption.decrypt(under_old) == "x"
    assert Fernet(new).decrypt(under_new) == b"x"


def test_renewing_puts_a_token_under_the_first_key(settings: Settings):
    old, new = new_key(), new_key()
    settings.ACW_ENCRYPTION_KEYS = [old]
    token = encryption.encrypt("x")
    settings.ACW_ENCRYPTION_KEYS = [new, old]

    assert Fernet(new).decrypt(encryption.renew(token)) == b"x"


def test_a_token_that_no_key_decrypts_names_the_setting_and_stays_as_it_is(
    settings: Settings,
):
    token = encryption.encrypt("x")
    settings.ACW_ENCRYPTION_KEYS = [new_key()]

    with pytest.raises(EncryptionError, match="ACW_ENCRYPTION_KEYS"):
        encryption.decrypt(token)
    assert encryption.renew(token) == token


def test_a_key_that_is_taken_out_decrypts_nothing_any_more(settings: Settings):
    token = encryption.encrypt("x")
    assert encryption.decrypt(token) == "x"
    settings.ACW_ENCRYPTION_KEYS = [new_key()]

    with pytest.raises(EncryptionError):
        encryption.decrypt(token)


def test_without_a_key_the_error_names_the_setting(settings: Settings):
    settings.ACW_ENCRYPTION_KEYS = []

    with pytest.raises(EncryptionError, match="ACW_ENCRYPTION_KEYS is empty"):
        encryption.encrypt("x")


def fernet_takes(text: str) -> bool:
    try:
        Fernet(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A" * 43 + "=", True),
        ("-_" * 21 + "A=", True),
        ("A" * 43, False),
        ("A" * 40, False),
        ("A" * 64, False),
        ("é" * 43 + "=", False),
        ("", False),
    ],
)
def test_a_key_is_what_fernet_takes_for_one(text: str, expected: bool):
    assert encryption.is_key(text) == fernet_takes(text) == expected


def test_a_new_key_is_one_and_no_two_are_the_same():
    keys = {encryption.new_key() for _ in range(2)}
    assert all(encryption.is_key(key) for key in keys)
    assert len(keys) == 2
