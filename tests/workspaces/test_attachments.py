from __future__ import annotations

import errno
import hashlib
import io
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.files.base import ContentFile, File
from django.core.files.storage import storages
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from tests.workspaces.factories import ConversationFactory
from tests.workspaces.storages import any_storage, stored
from workspaces import attachments
from workspaces.exceptions import AttachmentError, StorageFailed, WrongHost
from workspaces.models import Attachment, Conversation
from workspaces.storing.storage import ALIAS

__all__ = ["any_storage"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("any_storage")]


def test_an_attachment_is_bytes_and_a_row(any_storage: str):
    conversation = ConversationFactory()
    attachment = attachments.attach(
        conversation, name="notes.txt", content=b"hello", content_type="text/plain"
    )
    assert (attachment.name, attachment.size, attachment.content_type) == (
        "notes.txt",
        5,
        "text/plain",
    )
    assert attachment.host == ("test-host" if any_storage == "files" else "")
    assert attachment.digest == hashlib.sha256(b"hello").hexdigest()
    assert attachment.conversation == conversation
    assert attachment.orphaned_at is None
    with attachments.open_bytes(attachment) as content:
        assert content.read() == b"hello"
    assert stored() == {attachment.file.name}


def test_a_file_can_be_attached():
    attachment = attachments.attach(
        ConversationFactory(), name="a", content=ContentFile(b"abc")
    )
    assert attachment.size == 3
    assert attachment.content_type == "application/octet-stream"


def test_without_a_conversation_it_is_an_orphan_from_the_start():
    attachment = attachments.attach(None, name="a", content=b"")
    assert attachment.orphaned_at is not None


def fail(*args: Any, **options: Any) -> Any:
    raise OSError("no")


def after(wrapped: Callable[..., Any]) -> Callable[..., Any]:
    """The same, and then it fails."""

    def failing(*args: Any, **options: Any) -> Any:
        wrapped(*args, **options)
        fail()

    return failing


@pytest.mark.parametrize(
    "step", ["before its bytes", "after its bytes", "before its row", "after its row"]
)
def test_failing_at_any_step_leaves_neither_bytes_nor_a_row(
    step: str, monkeypatch: pytest.MonkeyPatch
):
    kept = storages[ALIAS]
    when, _, what = step.partition(" its ")
    target, name = (kept, "save") if what == "bytes" else (Attachment, "save")
    wrapped = fail if when == "before" else after(getattr(target, name))
    conversation = ConversationFactory()
    monkeypatch.setattr(target, name, wrapped)
    failure = StorageFailed if what == "bytes" else OSError
    with pytest.raises(failure):
        attachments.attach(conversation, name="a", content=b"x")
    assert stored() == set()
    assert not Attachment.objects.exists()


def test_a_storage_that_fails_says_what_is_wrong_and_no_secret(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    full = OSError(errno.ENOSPC, "No space left on device", "https://u:SECRET@bucket/")
    for error, said in ((full, "No space left"), (KeyError("SECRET"), "KeyError")):
        monkeypatch.setattr(storages[ALIAS], "save", Mock(side_effect=error))
        with pytest.raises(
            StorageFailed, match=f"^content: .*Storage .*{said}"
        ) as told:
            attachments.attach(None, name="a", content=b"x")
        assert "SECRET" not in str(told.value)
    assert "attachment.failed" in caplog.messages


def test_bytes_go_by_the_name_that_the_storage_gave_them(
    monkeypatch: pytest.MonkeyPatch,
):
    kept = storages[ALIAS]
    save = kept.save
    monkeypatch.setattr(
        kept, "save", lambda name, *rest, **options: save(f"{name}-1", *rest, **options)
    )
    attachment = attachments.attach(None, name="a", content=b"x")
    assert stored() == {attachment.file.name}
    monkeypatch.setattr(Attachment, "save", fail)
    with pytest.raises(OSError, match="no"):
        attachments.attach(None, name="a", content=b"x")
    assert stored() == {attachment.file.name}


@pytest.mark.django_db(transaction=True)
def test_whose_connection_is_lost_at_the_commit_has_bytes_for_the_row_there_may_be(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(connection, "commit", after(connection.commit))
    with pytest.raises(OSError, match="no"):
        attachments.attach(None, name="a", content=b"x")
    monkeypatch.undo()
    assert stored() == {Attachment.objects.get().file.name}


def test_bytes_that_cannot_be_taken_back_do_not_hide_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(Attachment, "save", fail)
    kept = storages[ALIAS]

    def locked(name: str) -> None:
        raise PermissionError("https://user:SECRET@bucket.example/")

    monkeypatch.setattr(kept, "delete", locked)
    with pytest.raises(OSError, match="no"):
        attachments.attach(ConversationFactory(), name="a", content=b"x")
    (record,) = (each for each in caplog.records if each.msg == "attachment.failed")
    assert "SECRET" not in record.__dict__["error"]


def test_a_transaction_that_is_rolled_back_leaves_no_row_and_bytes_for_the_sweep():
    with transaction.atomic():
        attachments.attach(ConversationFactory(), name="a", content=b"x")
        transaction.set_rollback(True)
    assert not Attachment.objects.exists()
    assert len(stored()) == 1


def test_what_is_refused_is_named_and_not_stored():
    conversation = ConversationFactory()
    fine = {"name": "a", "content_type": "text/plain", "content": b"x"}
    wrong: list[tuple[str, object]] = [
        ("name", "../x"),
        ("name", None),
        ("content_type", "text/html\r\nX: y"),
        ("content_type", None),
        ("content", "text"),
        ("content", io.BytesIO(b"x")),
        ("content", File(io.StringIO("text"))),
    ]
    for field, value in wrong:
        arguments: dict[str, Any] = {**fine, field: value}
        with pytest.raises(AttachmentError, match=f"^{field}: "):
            attachments.attach(conversation, **arguments)
    assert stored() == set()


def test_what_is_too_large_is_not_stored(settings: Settings):
    settings.ACW_ATTACHMENT_MAX_SIZE = 2
    with pytest.raises(AttachmentError, match=r"^content: larger than 2 bytes"):
        attachments.attach(ConversationFactory(), name="a", content=b"xxx")
    assert stored() == set()


def test_a_deleted_conversation_gets_no_more_whatever_the_caller_has_read():
    conversation = ConversationFactory()
    Conversation.objects.update(deleted_at=timezone.now())
    with pytest.raises(AttachmentError, match="undelete it first"):
        attachments.attach(conversation, name="a", content=b"x")
    Conversation.objects.all().delete()
    with pytest.raises(AttachmentError, match="is gone"):
        attachments.attach(conversation, name="a", content=b"x")
    assert stored() == set()


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


def test_bytes_on_another_host_are_not_looked_for_and_shared_ones_are_found(
    settings: Settings, any_storage: str
):
    attachment = attachments.attach(None, name="a", content=b"x")
    settings.ACW_HOST = "elsewhere"
    if any_storage == "files":
        with pytest.raises(WrongHost, match="lies on host 'test-host'"):
            attachments.open_bytes(attachment)
    else:
        with attachments.open_bytes(attachment) as content:
            assert content.read() == b"x"
