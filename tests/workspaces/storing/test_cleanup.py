from __future__ import annotations

import datetime as dt
from pathlib import Path
from unittest.mock import Mock

import pytest
from django.core.files.storage import storages
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from tests.workspaces.factories import AttachmentFactory, ConversationFactory
from tests.workspaces.storages import any_storage, make_old, put, stored
from workspaces import attachments
from workspaces.models import Attachment, Conversation
from workspaces.storing import cleanup
from workspaces.storing.cleanup import Removed, clean_up
from workspaces.storing.storage import ALIAS

__all__ = ["any_storage"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("any_storage")]

NOTHING = Removed(attachments=0, files=0)


@pytest.fixture
def attachment() -> Attachment:
    return attachments.attach(ConversationFactory(), name="a", content=b"x")


def delete_conversation(attachment: Attachment, **ago: float) -> None:
    Conversation.objects.filter(attachments=attachment).update(
        deleted_at=Now() - dt.timedelta(**ago)
    )


def test_those_of_a_conversation_deleted_long_ago_go(attachment: Attachment):
    delete_conversation(attachment, days=31)
    assert clean_up() == Removed(attachments=1, files=0)
    assert stored() == set()
    assert not Attachment.objects.exists()
    assert Conversation.objects.exists()


def test_those_of_a_conversation_deleted_lately_stay(attachment: Attachment):
    delete_conversation(attachment, days=29)
    assert clean_up() == NOTHING
    assert stored() == {attachment.file.name}


def test_undelete_within_the_retention_brings_them_back(attachment: Attachment):
    delete_conversation(attachment, days=29)
    clean_up()
    Conversation.objects.all().undelete()
    (back,) = Conversation.objects.get().attachments.all()
    with attachments.open_bytes(back) as content:
        assert content.read() == b"x"


def test_those_of_a_conversation_that_was_undeleted_stay(attachment: Attachment):
    delete_conversation(attachment, days=31)
    Conversation.objects.all().undelete()
    assert clean_up() == NOTHING


def test_old_ones_of_a_living_conversation_stay(attachment: Attachment):
    Attachment.objects.update(created_at=Now() - dt.timedelta(days=4000))
    make_old(str(attachment.file.name), days=4000)
    assert clean_up() == NOTHING
    assert stored() == {attachment.file.name}


def test_orphans_go_when_they_have_been_such_for_long(attachment: Attachment):
    attachments.detach(attachment)
    # As an operator would, to see it happen.
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE attachments SET orphaned_at = now() - INTERVAL '31 days'"
        )
    assert clean_up() == Removed(attachments=1, files=0)
    assert stored() == set()


def test_an_old_attachment_that_became_an_orphan_lately_stays(attachment: Attachment):
    Attachment.objects.update(created_at=Now() - dt.timedelta(days=4000))
    attachments.detach(attachment)
    assert clean_up() == NOTHING


def test_another_hosts_stay_on_its_disk_and_go_from_a_shared_storage(
    attachment: Attachment, any_storage: str
):
    Attachment.objects.update(host="elsewhere")
    delete_conversation(attachment, days=31)
    removed = clean_up()
    assert removed.attachments == (0 if any_storage == "files" else 1)
    assert Attachment.objects.exists() == (any_storage == "files")


def test_all_go_in_batches(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cleanup, "_BATCH", 2)
    conversation = ConversationFactory(
        deleted_at=timezone.now() - dt.timedelta(days=31)
    )
    for _ in range(5):
        row = AttachmentFactory(conversation=conversation)
        put(str(row.file.name))
        put(f"ab/{row.pk}", days=31)
    assert clean_up() == Removed(attachments=5, files=5)
    assert stored() == set()


def test_nothing_is_begun_once_the_worker_stops(attachment: Attachment):
    delete_conversation(attachment, days=31)
    put("orphan", days=31)
    assert clean_up(stop=lambda: True) == NOTHING


def test_bytes_that_are_gone_already_are_no_error(attachment: Attachment):
    delete_conversation(attachment, days=31)
    storages[ALIAS].delete(str(attachment.file.name))
    assert clean_up() == Removed(attachments=1, files=0)


def test_bytes_that_could_not_be_deleted_are_found_by_the_sweep(
    attachment: Attachment, monkeypatch: pytest.MonkeyPatch
):
    delete_conversation(attachment, days=31)
    make_old(str(attachment.file.name), days=31)

    def fail(name: str) -> None:
        raise PermissionError(name)

    with monkeypatch.context() as broken:
        broken.setattr(storages[ALIAS], "delete", fail)
        clean_up()
    assert stored() == {attachment.file.name}
    assert clean_up() == Removed(attachments=0, files=1)
    assert stored() == set()


def test_rows_go_before_their_bytes(
    attachment: Attachment, monkeypatch: pytest.MonkeyPatch
):
    delete_conversation(attachment, days=31)

    def crash(name: str) -> None:
        assert not Attachment.objects.exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(storages[ALIAS], "delete", crash)
    with pytest.raises(KeyboardInterrupt):
        clean_up()
    assert stored() == {attachment.file.name}


def test_a_row_that_leads_out_of_the_storage_deletes_nothing_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    victim = tmp_path / "victim"
    victim.touch()
    conversation = ConversationFactory(
        deleted_at=timezone.now() - dt.timedelta(days=31)
    )
    AttachmentFactory(conversation=conversation, file="../../victim")
    assert clean_up().attachments == 1
    assert victim.exists()
    assert "attachment.failed" in caplog.messages


def test_a_storage_that_does_not_answer_is_not_forgotten_what_it_keeps(
    attachment: Attachment, monkeypatch: pytest.MonkeyPatch
):
    delete_conversation(attachment, days=31)
    down = Mock(side_effect=ConnectionError)
    with monkeypatch.context() as patched:
        patched.setattr(storages[ALIAS], "exists", down)
        with pytest.raises(ConnectionError):
            clean_up()
    assert Attachment.objects.count() == 1
    assert clean_up().attachments == 1
    assert stored() == set()
