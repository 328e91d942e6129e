from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest
from django.core.files.base import ContentFile
from pytest_django import Settings

from workspaces.exceptions import AttachmentError
from workspaces.storing.uploads import checked_name, checked_type, measured

REFUSED_NAMES = {
    "nothing": "",
    "parent": "..",
    "itself": ".",
    "path": "../x",
    "windows path": "a\\b",
    "line": "a\nb",
    "nul": "a\0",
    "control": "a\x1b[31m",
    "turned around": "invoice\u202efdp.exe",
    "isolated": "a\u2066b",
    "invisible": "a\u200bb",
    "half a character": "a\ud800",
    "one character too long": "x" * 256,
    "one byte too long": "ä" * 128,
    "hidden by a space": " a",
    "cut by Windows": "a.exe. ",
    "cut to another name": "a.",
    "a device": "NUL",
    "a device with an extension": "com1.txt",
}


def test_names_that_would_show_or_be_saved_as_another_are_refused():
    for name in REFUSED_NAMES.values():
        with pytest.raises(AttachmentError, match=r"^name: ") as refused:
            checked_name(name)
        assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "name",
    ["x" * 255, "ä <b>.html", ".env", "a..b", "नमस्ते\u200d.txt", "console.log"],
    ids=["long", "markup", "dot", "dots", "joiner", "no device"],
)
def test_other_names_are_kept_as_they_are(name: str):
    assert checked_name(name) == name


def test_a_name_is_composed_and_has_plain_spaces():
    assert checked_name("Bildschirmfoto 3\u202fPM u\u0308.png") == (
        "Bildschirmfoto 3 PM ü.png"
    )


@pytest.mark.parametrize(
    "content_type",
    ["", "text", "text/", "text/html\r\nX: y", "a/b/c", "x" * 300 + "/y"],
    ids=["empty", "half", "no subtype", "header", "three", "long"],
)
def test_what_is_no_type_is_refused(content_type: str):
    with pytest.raises(AttachmentError, match=r"^content_type: must be like"):
        checked_type(content_type)


def test_a_type_is_kept_without_its_parameters():
    assert checked_type("Text/Plain; charset=utf-8") == "text/plain"


def test_only_the_types_of_the_setting_are_accepted(settings: Settings):
    settings.ACW_ATTACHMENT_TYPES = ["text/plain", "Image/*"]
    assert checked_type("text/plain") == "text/plain"
    assert checked_type("image/png") == "image/png"
    with pytest.raises(AttachmentError, match="text/html is not accepted"):
        checked_type("text/html")


def test_bytes_are_counted_and_digested():
    with measured(ContentFile(b"hello")) as read:
        assert (read.size, read.content.size, read.content.read()) == (5, 5, b"hello")
    assert read.digest == hashlib.sha256(b"hello").hexdigest()


def test_a_file_is_read_from_its_beginning_wherever_it_stands():
    content = ContentFile(b"hello")
    content.read()
    with measured(content) as read:
        assert read.content.read() == b"hello"


def test_what_is_too_large_is_refused_whatever_it_says_of_itself(settings: Settings):
    settings.ACW_ATTACHMENT_MAX_SIZE = 5
    taken = []

    class Liar(ContentFile):  # type: ignore[type-arg] # it takes none when it runs
        size = 1

        def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
            for _ in range(100):
                taken.append(1)
                yield b"xxx"

    with (
        pytest.raises(AttachmentError, match=r"larger than 5 bytes"),
        measured(Liar(b"")),
    ):
        pass
    assert len(taken) == 2
    with measured(b"12345") as read:
        assert read.size == 5
