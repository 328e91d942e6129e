from __future__ import annotations

import datetime as dt
import os
import time
from pathlib import Path

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import Settings

from tests.workspaces.factories import AttachmentFactory, ConversationFactory
from workspaces import attachments, cleanup
from workspaces.cleanup import Removed, clean_up
from workspaces.models import Attachment, Conversation
from workspaces.storage import AttachmentStorage

pytestmark = pytest.mark.django_db

NOTHING = Removed(attachments=0, files=0)


@pytest.fixture
def attachment() -> Attachment:
    return attachments.attach(ConversationFactory(), name="a", content=b"x")


def delete_conversation(attachment: Attachment, **ago: float) -> None:
    Conversation.objects.filter(attachments=attachment).update(
        deleted_at=Now() - dt.timedelta(**ago)
    )


def file_of(attachment: Attachment) -> Path:
    return Path(attachment.file.path)


def old_file(path: Path, **age: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    then = time.time() - dt.timedelta(**age).total_seconds()
    os.utime(path, (then, then))
    return path


def test_those_of_a_conversation_deleted_long_ago_go(attachment: Attachment):
    delete_conversation(attachment, days=31)
    assert clean_up() == Removed(attachments=1, files=0)
    assert not file_of(attachment).exists()
    assert not Attachment.objects.exists()
    assert Conversation.objects.exists()


def test_those_of_a_conversation_deleted_lately_stay(attachment: Attachment):
    delete_conversation(attachment, days=29)
    assert clean_up() == NOTHING
    assert file_of(attachment).exists()


def test_those_of_a_conversation_that_was_undeleted_stay(attachment: Attachment):
    delete_conversation(attachment, days=31)
    Conversation.objects.all().undelete()
    assert clean_up() == NOTHING


def test_old_ones_of_a_living_conversation_stay(attachment: Attachment):
    Attachment.objects.update(created_at=Now() - dt.timedelta(days=4000))
    old_file(file_of(attachment), days=4000)
    assert clean_up() == NOTHING
    assert file_of(attachment).exists()


def test_orphans_go_when_they_have_been_such_for_long(attachment: Attachment):
    attachments.detach(attachment)
    # As an operator would, to see it happen.
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE attachments SET orphaned_at = now() - INTERVAL '31 days'"
        )
    assert clean_up() == Removed(attachments=1, files=0)
    assert not file_of(attachment).exists()


def test_an_old_attachment_that_became_an_orphan_lately_stays(attachment: Attachment):
    Attachment.objects.update(created_at=Now() - dt.timedelta(days=4000))
    attachments.detach(attachment)
    assert clean_up() == NOTHING


def test_another_hosts_stay(attachment: Attachment):
    Attachment.objects.update(host="elsewhere")
    delete_conversation(attachment, days=31)
    assert clean_up() == NOTHING
    assert Attachment.objects.exists()


def test_files_without_a_row_go_when_they_are_old(
    data_dir: Path, attachment: Attachment
):
    old = old_file(data_dir / "attachments" / "ab" / "orphan", days=31)
    new = old_file(data_dir / "attachments" / "ab" / "upload", days=29)
    assert clean_up() == Removed(attachments=0, files=1)
    assert not old.exists()
    assert new.exists()
    assert file_of(attachment).exists()


def test_files_of_another_hosts_rows_stay(data_dir: Path):
    row = AttachmentFactory(host="elsewhere")
    kept = old_file(data_dir / "attachments" / row.file.name, days=4000)
    assert clean_up() == NOTHING
    assert kept.exists()


def test_a_file_whose_row_may_not_be_committed_yet_stays_however_short_the_retention(
    data_dir: Path, settings: Settings
):
    settings.JOBS_ATTACHMENT_CLEANUP_RETENTION = dt.timedelta(0)
    upload = old_file(data_dir / "attachments" / "ab" / "upload", minutes=59)
    assert clean_up() == NOTHING
    assert upload.exists()


def test_links_are_neither_followed_nor_removed(data_dir: Path, tmp_path: Path):
    outside = old_file(tmp_path / "outside" / "file", days=4000)
    top = data_dir / "attachments"
    top.mkdir(parents=True)
    (top / "directory").symlink_to(outside.parent)
    (top / "file").symlink_to(outside)
    os.utime(top / "file", (1, 1), follow_symlinks=False)
    assert clean_up() == NOTHING
    assert outside.exists()
    assert (top / "file").is_symlink()


def test_all_go_in_batches(data_dir: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cleanup, "_BATCH", 2)
    conversation = ConversationFactory(
        deleted_at=timezone.now() - dt.timedelta(days=31)
    )
    AttachmentFactory.create_batch(5, conversation=conversation)
    for n in range(5):
        old_file(data_dir / "attachments" / "ab" / str(n), days=31)
    assert clean_up() == Removed(attachments=5, files=5)


def test_nothing_is_begun_once_the_worker_stops(data_dir: Path, attachment: Attachment):
    delete_conversation(attachment, days=31)
    old_file(data_dir / "attachments" / "orphan", days=31)
    assert clean_up(stop=lambda: True) == NOTHING


def test_bytes_that_are_gone_already_are_no_error(attachment: Attachment):
    delete_conversation(attachment, days=31)
    file_of(attachment).unlink()
    assert clean_up() == Removed(attachments=1, files=0)


def test_a_row_that_leads_out_of_the_directory_deletes_nothing_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    victim = old_file(tmp_path / "victim", days=1)
    conversation = ConversationFactory(
        deleted_at=timezone.now() - dt.timedelta(days=31)
    )
    AttachmentFactory(conversation=conversation, file="../../victim")
    clean_up()
    assert victim.exists()
    assert "attachment.failed" in caplog.messages


def test_bytes_that_could_not_be_deleted_are_found_by_the_sweep(
    attachment: Attachment, monkeypatch: pytest.MonkeyPatch
):
    delete_conversation(attachment, days=31)
    old_file(file_of(attachment), days=31)

    def fail(self: object, name: str) -> None:
        raise PermissionError(name)

    with monkeypatch.context() as broken:
        broken.setattr(AttachmentStorage, "delete", fail)
        clean_up()
    assert file_of(attachment).exists()
    assert clean_up() == Removed(attachments=0, files=1)
    assert not file_of(attachment).exists()


def test_rows_go_before_their_bytes(
    attachment: Attachment, monkeypatch: pytest.MonkeyPatch
):
    delete_conversation(attachment, days=31)

    def crash(self: object, name: str) -> None:
        assert not Attachment.objects.exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(AttachmentStorage, "delete", crash)
    with pytest.raises(KeyboardInterrupt):
        clean_up()
    assert file_of(attachment).exists()
