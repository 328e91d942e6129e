from __future__ import annotations

import io

import pytest
from django.core.management import CommandError

from tests.notify.commands.calling import webhook
from tests.notify.factories import EndpointFactory

pytestmark = pytest.mark.django_db
URL = "https://hooks.example/T000/SECRET-TOKEN"


def test_a_name_that_there_is_not_is_a_wrong_call():
    EndpointFactory(name="chat")

    with pytest.raises(CommandError, match="no endpoint 'chta'; there are: chat") as no:
        webhook("test", "chta")

    assert no.value.returncode == 2


@pytest.mark.parametrize("name", ["ch\udce9t", "ch\0t"], ids=ascii)
def test_a_name_that_is_no_text_is_one_that_there_is_not(name: str):
    """A shell that does not speak UTF-8 hands over the like."""
    with pytest.raises(CommandError, match=r"no endpoint 'ch.*t'; there are: none"):
        webhook("test", name)


@pytest.mark.parametrize(
    "call", [["add", "other", URL], ["rotate", "chat"]], ids=["add", "rotate"]
)
def test_a_secret_that_is_no_text_is_a_wrong_call(
    call: list[str], monkeypatch: pytest.MonkeyPatch
):
    """As where a file of random bytes is handed over."""
    EndpointFactory(name="chat")
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff" * 32), "utf-8")
    )

    with pytest.raises(CommandError, match=r"--secret-stdin: .* no text") as refused:
        webhook(*call, "--secret-stdin")

    assert refused.value.returncode == 2


@pytest.mark.parametrize(
    "call", [["add", "other", URL], ["rotate", "chat"]], ids=["add", "rotate"]
)
def test_of_what_is_no_secret_no_more_is_read_than_shows_it(
    call: list[str], monkeypatch: pytest.MonkeyPatch
):
    EndpointFactory(name="chat")
    handed_over = io.StringIO("x" * 100_000)
    monkeypatch.setattr("sys.stdin", handed_over)

    with pytest.raises(CommandError, match="24 to 64 characters long"):
        webhook(*call, "--secret-stdin")

    assert handed_over.tell() < 10_000
