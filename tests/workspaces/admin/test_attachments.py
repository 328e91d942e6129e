from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.storage import storages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from notify.models import AuditEntry
from tests.workspaces.admin.desk import act, download_url, shown, staff
from tests.workspaces.factories import ConversationFactory
from workspaces import attachments
from workspaces.models import Attachment, Conversation
from workspaces.storing.storage import ALIAS

pytestmark = pytest.mark.django_db

CONVERSATIONS = "admin:workspaces_conversation"
ATTACHMENTS = "admin:workspaces_attachment"


def test_a_file_is_uploaded(admin_client: Client):
    conversation = ConversationFactory()
    assert admin_client.get(reverse(f"{ATTACHMENTS}_add")).status_code == 200
    upload = SimpleUploadedFile("notes.txt", b"hello", "text/plain")
    response = admin_client.post(
        reverse(f"{ATTACHMENTS}_add"),
        {"conversation": conversation.pk, "upload": upload},
        follow=True,
    )
    assert "was added successfully" in response.content.decode()
    attachment = Attachment.objects.get()
    assert (attachment.name, attachment.size, attachment.content_type) == (
        "notes.txt",
        5,
        "text/plain",
    )
    with attachments.open_bytes(attachment) as content:
        assert content.read() == b"hello"


def test_what_cannot_be_stored_is_said_in_the_form(
    admin_client: Client, data_dir: Path
):
    upload = SimpleUploadedFile("NUL", b"hello", "text/plain")
    conversation = ConversationFactory()
    response = admin_client.post(
        reverse(f"{ATTACHMENTS}_add"),
        {"conversation": conversation.pk, "upload": upload},
    )
    assert "name: must not be a name that systems reserve" in response.content.decode()
    assert not (data_dir / "attachments").exists()


def test_a_deleted_conversation_cannot_be_chosen(admin_client: Client):
    conversation = ConversationFactory()
    Conversation.objects.all().delete_softly()
    response = admin_client.post(
        reverse(f"{ATTACHMENTS}_add"),
        {"conversation": conversation.pk, "upload": SimpleUploadedFile("a", b"x")},
    )
    assert "Select a valid choice" in response.content.decode()


def test_attachments_are_listed_and_shown(admin_client: Client, attachment: Attachment):
    for url in (
        reverse(f"{ATTACHMENTS}_changelist"),
        reverse(f"{ATTACHMENTS}_change", args=[attachment.pk]),
    ):
        page = admin_client.get(url).content.decode()
        assert "ä &lt;b&gt;.html" in page
        assert "25 bytes" in page.replace("\xa0", " ")


def test_a_download_is_saved_and_never_shown(
    admin_client: Client, attachment: Attachment
):
    response = admin_client.get(download_url(attachment))
    assert response.getvalue() == b"<script>alert(1)</script>"
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"].startswith("attachment; ")


def test_what_is_too_large_is_said_in_the_form(
    admin_client: Client, settings: Settings
):
    settings.ACW_ATTACHMENT_MAX_SIZE = 4
    response = admin_client.post(
        reverse(f"{ATTACHMENTS}_add"),
        {
            "conversation": ConversationFactory().pk,
            "upload": SimpleUploadedFile("a", b"hello"),
        },
    )
    assert "content: larger than 4" in response.content.decode()
    assert not Attachment.objects.exists()


def test_a_storage_that_is_down_is_said_at_the_upload_and_nothing_is_kept(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
):
    down = Mock(side_effect=ConnectionError("https://user:SECRET@bucket.example/"))
    monkeypatch.setattr(storages[ALIAS], "save", down)
    data = {"conversation": ConversationFactory().pk}
    upload = SimpleUploadedFile("a.txt", b"hello", "text/plain")
    response = admin_client.post(
        reverse(f"{ATTACHMENTS}_add"), {**data, "upload": upload}
    )
    assert response.status_code == 200
    (error,) = response.context["adminform"].form.errors["upload"]
    assert error.endswith("could not store it: ConnectionError")
    assert not Attachment.objects.exists()
    assert not LogEntry.objects.exists()


def test_a_long_title_leaves_the_other_columns_their_room(
    admin_client: Client, attachment: Attachment
):
    title = "t" * 200
    Conversation.objects.update(title=title)
    page = shown(admin_client, ATTACHMENTS)
    assert f'<span class="clamped" title="{title}">' in page
    Attachment.objects.update(conversation=None, orphaned_at=Now())
    assert 'class="field-conversation_cell">-<' in shown(admin_client, ATTACHMENTS)


def test_missing_bytes_are_shown(admin_client: Client, attachment: Attachment):
    Attachment.objects.update(missing_at=Now())
    assert "missing</span> since" in shown(admin_client, ATTACHMENTS)
    assert "missing</span> since" in shown(admin_client, ATTACHMENTS, attachment)
    assert attachment.conversation
    assert "missing</span> since" in shown(
        admin_client, CONVERSATIONS, attachment.conversation
    )


def test_conversations_are_not_all_written_into_the_form(admin_client: Client):
    ConversationFactory.create_batch(3)
    page = admin_client.get(reverse(f"{ATTACHMENTS}_add")).content.decode()
    assert "admin-autocomplete" in page
    assert "Conversation " not in page


def test_a_download_is_for_those_who_may_see_it(client: Client, attachment: Attachment):
    url = download_url(attachment)
    assert client.get(url).status_code == 302
    staff(client, "view_conversation")
    assert client.get(url).status_code == 403
    # Nor is anybody else told whether there is one.
    Attachment.objects.all().delete()
    assert client.get(url).status_code == 403


def test_bytes_that_are_not_here_are_not_found(
    admin_client: Client, attachment: Attachment, settings: Settings
):
    settings.ACW_HOST = "elsewhere"
    assert admin_client.get(download_url(attachment)).status_code == 404
    settings.ACW_HOST = "test-host"
    Path(attachment.file.path).unlink()
    assert admin_client.get(download_url(attachment)).status_code == 404
    Attachment.objects.all().delete()
    assert admin_client.get(download_url(attachment)).status_code == 404


def test_attachments_are_detached(admin_client: Client, attachment: Attachment):
    page = act(admin_client, ATTACHMENTS, "detach", [attachment])
    assert "1 detached" in page
    attachment.refresh_from_db()
    assert attachment.conversation is None
    assert attachment.orphaned_at is not None
    entry = AuditEntry.objects.get(action="attachment.detach")
    assert entry.target == f"attachment:{attachment.pk}"
    assert entry.actor == "admin"


def test_not_detached_by_who_may_only_look(client: Client, attachment: Attachment):
    staff(client, "view_attachment")
    act(client, ATTACHMENTS, "detach", [attachment])
    attachment.refresh_from_db()
    assert attachment.conversation is not None
