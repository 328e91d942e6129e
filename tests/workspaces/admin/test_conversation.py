from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from notify.models import AuditEntry
from tests.workspaces.admin.desk import act, staff
from tests.workspaces.factories import ConversationFactory
from workspaces import attachments
from workspaces.models import Attachment, Conversation

pytestmark = pytest.mark.django_db

CONVERSATIONS = "admin:workspaces_conversation"
ATTACHMENTS = "admin:workspaces_attachment"
HTML = b"<script>alert(1)</script>"


@pytest.fixture
def attachment() -> Attachment:
    return attachments.attach(
        ConversationFactory(), name="ä <b>.html", content=HTML, content_type="text/html"
    )


def download_url(attachment: Attachment) -> str:
    return reverse("admin:workspaces_attachment_download", args=[attachment.pk])


def test_conversations_are_listed_with_what_they_have(
    admin_client: Client, attachment: Attachment
):
    page = admin_client.get(reverse(f"{CONVERSATIONS}_changelist")).content.decode()
    assert attachment.conversation
    assert attachment.conversation.title in page
    change = reverse(f"{CONVERSATIONS}_change", args=[attachment.conversation.pk])
    page = admin_client.get(change).content.decode()
    assert "ä &lt;b&gt;.html" in page
    assert download_url(attachment) in page


def test_a_conversation_can_be_added_and_changed(admin_client: Client):
    inline = {"attachments-TOTAL_FORMS": 0, "attachments-INITIAL_FORMS": 0}
    admin_client.post(reverse(f"{CONVERSATIONS}_add"), {"title": "one", **inline})
    conversation = Conversation.objects.get()
    assert conversation.title == "one"
    change = reverse(f"{CONVERSATIONS}_change", args=[conversation.pk])
    admin_client.post(change, {"title": "two", **inline})
    conversation.refresh_from_db()
    assert conversation.title == "two"


def test_conversations_are_deleted_softly_and_brought_back(admin_client: Client):
    conversation = ConversationFactory()
    assert "1 deleted." in act(
        admin_client, CONVERSATIONS, "delete_softly", [conversation]
    )
    conversation.refresh_from_db()
    assert conversation.deleted_at is not None
    assert "1 undeleted." in act(
        admin_client, CONVERSATIONS, "undelete", [conversation]
    )
    conversation.refresh_from_db()
    assert conversation.deleted_at is None
    assert AuditEntry.objects.count() == 2


@pytest.mark.parametrize("page", [CONVERSATIONS, ATTACHMENTS])
def test_nothing_is_deleted_for_good_by_hand(
    admin_client: Client, attachment: Attachment, page: str
):
    assert attachment.conversation
    pk = attachment.pk if page == ATTACHMENTS else attachment.conversation.pk
    assert admin_client.post(reverse(f"{page}_delete", args=[pk])).status_code == 403


def test_not_deleted_by_who_may_only_look(client: Client):
    staff(client, "view_conversation", "change_conversation")
    act(client, CONVERSATIONS, "delete_softly", [ConversationFactory()])
    assert Conversation.objects.get().deleted_at is None
