from __future__ import annotations

from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.utils import timezone
from pytest_django import Settings

from tests.workspaces.factories import ConversationFactory
from workspaces import attachments
from workspaces.exceptions import AttachmentError, WrongHost
from workspaces.models import Attachment

pytestmark = pytest.mark.django_db


def files(data_dir: Path) -> list[Path]:
    return [path for path in (data_dir / "attachments").rglob("*") if path.is_file()]


def test_an_attachment_is_bytes_and_a_row(data_dir: Path):
    conversation = ConversationFactory()
    attachment = attachments.attach(
        conversation, name="notes.txt", content=b"hello", content_type="text/plain"
    )
    assert (attachment.name, attachment.size, attachment.host) == (
        "notes.txt",
        5,
        "test-host",
    )
    assert attachment.conversation == conversation
    assert attachment.orphaned_at is None
    with attachments.open_bytes(attachment) as content:
        assert content.read() == b"hello"
    assert len(files(data_dir)) == 1


def test_a_file_can_be_attached(data_dir: Path):
    attachment = attachments.attach(
        ConversationFactory(), name="a", content=ContentFile(b"abc")
    )
    assert attachment.size == 3
    assert attachment.content_type == "application/octet-stream"


def test_without_a_conversation_it_is_an_orphan_from_the_start():
    attachment = attachments.attach(None, name="a", content=b"")
    assert attachment.orphaned_at is not None


def test_a_row_that_cannot_be_written_leaves_no_bytes(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(self: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(Attachment, "save", fail)
    with pytest.raises(RuntimeError):
        attachments.attach(ConversationFactory(), name="a", content=b"x")
    assert files(data_dir) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "../x"),
        ("name", "a\\b"),
        ("name", "a\nb"),
        ("name", "a\0"),
        ("name", "x" * 256),
        ("content_type", ""),
        ("content_type", "text/html\r\nX: y"),
    ],
)
def test_what_is_refused_is_named(data_dir: Path, field: str, value: str):
    arguments = {"name": "a", "content_type": "text/plain", field: value}
    with pytest.raises(AttachmentError, match=f"^{field}: "):
        attachments.attach(ConversationFactory(), content=b"x", **arguments)
    assert files(data_dir) == []


def test_a_deleted_conversation_gets_no_more():
    conversation = ConversationFactory(deleted_at=timezone.now())
    with pytest.raises(AttachmentError, match="undelete it first"):
        attachments.attach(conversation, name="a", content=b"x")


def test_one_that_is_detached_becomes_an_orphan_then():
    attachment = attachments.attach(ConversationFactory(), name="a", content=b"x")
    assert attachments.detach(attachment)
    attachment.refresh_from_db()
    since = attachment.orphaned_at
    assert attachment.conversation is None
    assert since is not None
    assert not attachments.detach(attachment)  # its time does not begin anew
    attachment.refresh_from_db()
    assert attachment.orphaned_at == since


def test_another_hosts_bytes_are_not_looked_for(settings: Settings):
    attachment = attachments.attach(None, name="a", content=b"x")
    settings.ACW_HOST = "elsewhere"
    with pytest.raises(WrongHost):
        attachments.open_bytes(attachment)
