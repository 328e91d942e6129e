from __future__ import annotations

import uuid

import pytest

from notify import extra_headers, outbound, signing
from notify.exceptions import InvalidHeader
from tests.notify.factories import SECRET, TOPIC


def test_lines_are_names_and_values():
    text = "Authorization:  Bearer a:b \r\n\n X-Tenant : 7\n"

    assert extra_headers.parse(text) == {"Authorization": "Bearer a:b", "X-Tenant": "7"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X-Tenant: 7\nSECRET-TOKEN", 'line 2 is not of the form "Name: value"'),
        (": SECRET-TOKEN", 'line 1 is not of the form "Name: value"'),
        (
            "X-Tenant: 7\nx-tenant: SECRET-TOKEN",
            "the header 'x-tenant' is given twice",
        ),
    ],
    ids=["no colon", "no name", "twice"],
)
def test_a_line_that_cannot_be_read_is_named_and_not_quoted(text: str, message: str):
    with pytest.raises(InvalidHeader) as refused:
        extra_headers.parse(text)

    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"X-A": "SECRET\nX-Evil: 1"}, "'X-A': its value is not printable ASCII"),
        ({"X-A": "SECRET\x00"}, "'X-A': its value is not printable ASCII"),
        ({"X-A": "SECRET é"}, "'X-A': its value is not printable ASCII"),
        ({"X A": "SECRET"}, "'X A': a name is letters, digits and hyphens"),
        ({"X-Ä": "SECRET"}, "'X-Ä': a name is letters, digits and hyphens"),
        ({"X-A": "  "}, "the header 'X-A' has no value"),
        ({"X-A": "SECRET", "x-a": "SECRET"}, "upper and lower case are the same"),
        (
            {f"X-{n}": "SECRET" for n in range(21)},
            "there are 21 headers, and at most 20 may be",
        ),
        ({"X-A": "s" * 9000}, "the headers have 9,007 bytes, and at most 8,192 may be"),
    ],
    ids=[
        "two lines",
        "a NUL",
        "not ASCII",
        "a space in the name",
        "a name that is not ASCII",
        "no value",
        "twice",
        "too many",
        "too long",
    ],
)
def test_what_cannot_be_sent_is_refused_and_its_value_not_quoted(
    headers: dict[str, str], message: str
):
    with pytest.raises(InvalidHeader) as refused:
        extra_headers.checked(headers)

    assert message in str(refused.value)
    assert "SECRET" not in str(refused.value)


RESERVED = """Host Content-Type Content-Length Connection Transfer-Encoding Accept-Encoding User-Agent Cookie Expect
Upgrade TE Trailer Keep-Alive Via Date Proxy-Authorization X-ACW-Signature X-ACW-Anything Webhook-Id Svix-Id"""


def test_reserved_names_are_refused_in_any_case():
    names = RESERVED.split()
    spelled = [*names, *map(str.lower, names), *map(str.upper, names)]

    assert [name for name in spelled if not extra_headers.is_reserved(name)] == []
    with pytest.raises(InvalidHeader, match="'x-Acw-topic' is reserved"):
        extra_headers.checked({"x-Acw-topic": "x"})


def test_what_acw_sends_itself_is_reserved():
    signed = signing.headers(
        [SECRET], event_id=uuid.uuid4(), timestamp=1, topic=TOPIC, body=b"{}"
    )
    ours = [*signed, *outbound._OWN_HEADERS, "Host", "Content-Length"]

    assert [name for name in ours if not extra_headers.is_reserved(name)] == []


def test_credentials_and_names_of_the_receivers_own_are_accepted():
    headers = {"Authorization": " Bearer abc ", "X-API-Key": "k", "Accept": "*/*"}

    assert extra_headers.checked(headers) == {**headers, "Authorization": "Bearer abc"}


def test_what_is_stored_and_reserved_since_is_left_out():
    stored = {"X-Tenant": "7", "EXPECT": "100-continue", "x-acw-topic": "x"}

    assert extra_headers.permitted(stored) == {"X-Tenant": "7"}
