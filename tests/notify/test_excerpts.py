from __future__ import annotations

import json

import pytest

from notify import excerpts, signing
from tests.notify.factories import SECRET

URL = "https://hooks.example/services/T00/b4/xK9-%7Bq%7D/chat?token=QUERY-T0KEN&v=2"
HEADERS = {"Authorization": "Bearer abc/DEF+123=", "X-Team": "ops"}


def hidden(said: bytes) -> bytes:
    return excerpts.without_credentials(
        said, url=URL, headers=HEADERS, secrets=[SECRET]
    )


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (f"no {URL} here".encode(), b"no *** here"),
        (
            b"Cannot POST /services/T00/b4/xK9-%7Bq%7D/chat, see /help",
            b"Cannot POST ***, see /help",
        ),
        (
            b'{"path": "services/T00/b4/xK9-{q}/chat"}',
            b'{"path": "services/T00/b4/***/chat"}',
        ),
        (b'{"token":"QUERY-T0KEN","v":"2"}', b'{"token":"***","v":"2"}'),
        (b"?token=QUERY-T0KEN&amp;v=2.", b"?***."),
        (b"got Bearer abc/DEF+123=, not ours", b"got ***, not ours"),
        (rb"got abc\/DEF+123, X-Team: ops", b"got ***, X-Team: ops"),
        (f"expected {SECRET}!".encode(), b"expected ***!"),
        (signing.standard_form(SECRET).encode(), b"***"),
    ],
    ids=[
        *("URL", "path", "decoded", "value", "HTML"),
        *("header", "JSON", "secret", "its other form"),
    ],
)
def test_what_could_be_a_credential_does_not_come_back(said: bytes, kept: bytes):
    assert hidden(said) == kept


def test_what_is_cut_off_within_a_credential_goes_too():
    said = f"expected {SECRET}".encode()

    for cut in range(len(SECRET) - excerpts._SHORTEST_PART):
        assert hidden(said[: len(said) - cut]) == b"expected ***"


def test_what_the_receiver_says_of_itself_stays():
    said = b"".join(
        json.dumps(text).encode()
        for text in ("", "ok", "the chat services are down", "t", "/", "https://", "v")
    )

    assert hidden(said) == said


def test_nothing_is_hidden_for_a_bare_address():
    said = b"GET / is all there is, and //"

    assert (
        excerpts.without_credentials(
            said, url="https://h/%2F%2F?", headers={}, secrets=[]
        )
        == said
    )


def test_as_text_it_can_be_stored_and_shown():
    said = b"\x00\x1b[31mred\xff\n\thttps://me:hunter2@host/\xe2\x80\xae"

    assert excerpts.readable(said) == "��[31mred�\n\thttps://me:***@host/�"
