from __future__ import annotations

from base64 import b64encode
from urllib.parse import quote

import pytest

from tests.workspaces.cpu import seconds_of
from workspaces.plumbing import presentable


def test_control_characters_and_turned_directions_are_blanks():
    text = presentable.stderr("a\x1b[2J\0b\r\nc\u202ed\tü\n".encode())
    assert text == "a [2J b\n\nc d ü\n"


@pytest.mark.parametrize(
    "said",
    [
        "fatal: https://user:SECRET@git.example/x",
        "fatal: https://SECRET@git.example/x",
        "http://proxy.example/?token=SECRET",
        "> Authorization: Basic SECRET",
        "< authorization: bearer SECRET",
        "PRIVATE-TOKEN: SECRET",
        "Cookie: SECRET",
        "remote: token ghp_SECRETSECRETSECRET is revoked",
        "glpat-SECRETSECRETSECRET",
        "github_pat_SECRET_SECRETSECRET",
    ],
)
def test_what_looks_like_a_credential_is_left_out(said: str):
    assert "SECRET" not in presentable.stderr(said.encode())


def test_a_known_secret_is_left_out_however_it_is_spelled():
    secret = "p@ss/w:rd"
    known = presentable.secrets_of_url(
        f"http://user:{quote(secret, safe='')}@proxy.example:3128"
    )
    spellings = [
        secret,
        quote(secret, safe=""),
        b64encode(f"user:{secret}".encode()).decode(),
    ]
    said = " ".join(f"<{spelling}>" for spelling in spellings)
    assert presentable.stderr(said.encode(), secrets=known) == "<***> <***> <***>"


@pytest.mark.parametrize(
    "url", ["", "http://proxy.example:3128", "http://[", "http://[@x", "http://@x"]
)
def test_of_other_urls_nothing_is_secret(url: str):
    assert presentable.secrets_of_url(url) == frozenset()


def test_what_is_in_every_word_is_not_left_out():
    assert "b" not in presentable.secrets_of_url("http://a:b@proxy.example")


def test_a_token_in_the_place_of_the_user_is_a_secret():
    assert "TOKEN" in presentable.secrets_of_url("https://TOKEN@proxy.example")
    assert "TOKEN" in presentable.secrets_of_url("TOKEN:@proxy.example:80")


def test_a_value_is_one_short_line():
    assert presentable.value("a\nb\x00" + "c" * 1000) == f"a b {'c' * 195}…"
    cut = "x" * 190 + " https://user:SECRET@git.example/x"
    assert "SECRET" not in presentable.value(cut)


def test_no_text_costs_more_than_it_is_long():
    pieces = [
        b"x", b"a://", b"a://b@", b"a://b:", b"https://", b"@", b":", b"://", b"Authorization: ", b"cookie=", b"ghp_",
        b"ghp_a", b"github_pat_", b"a:b@c ", b"?", b"a+.-", b"\x1b", b"\xe2\x80\xae", b"\xff", b"glpat-a", b" \n",
    ]  # fmt: skip

    def present() -> None:
        for piece in pieces:
            presentable.stderr(piece * (64 * 1024 // len(piece)))
            presentable.stderr(b"https://u:p@h " + piece * (64 * 1024 // len(piece)))

    # Of a pattern that is not bounded, one of these alone takes half a minute.
    assert seconds_of(present) < 5


def test_what_the_disk_refuses_is_said_with_its_place_as_far_as_there_is_one():
    refused = PermissionError(13, "Permission denied", b"/data/odd\xff\nname")
    said = presentable.disk_error(refused)
    assert said == "Permission denied: /data/odd\N{REPLACEMENT CHARACTER} name"
    assert presentable.disk_error(OSError(5, "I/O error")) == "I/O error"
    assert presentable.disk_error(TimeoutError()) == "TimeoutError"
