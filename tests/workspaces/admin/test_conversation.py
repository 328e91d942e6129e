from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from notify.models import AuditEntry
from tests.workspaces.admin.desk import act, download_url, staff
from tests.workspaces.factories import ConversationFactory
from workspaces import attachments
from workspaces.admin.conversation import ConversationAdmin
from workspaces.models import Attachment, Conversation

pytestmark = pytest.mark.django_db

CONVERSATIONS = "admin:workspaces_conversation"
ATTACHMENTS = "admin:workspaces_attachment"


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


def test_the_form_of_a_new_one_shows_nothing_that_it_does_not_have(
    admin_client: Client,
):
    page = admin_client.get(reverse(f"{CONVERSATIONS}_add")).content.decode()
    assert "object at 0x" not in page
    assert "Created at" not in page
    assert 'id="attachments-group"' not in page


def test_a_conversation_can_be_added_and_changed(admin_client: Client):
    inline = {"attachments-TOTAL_FORMS": 0, "attachments-INITIAL_FORMS": 0}
    admin_client.post(reverse(f"{CONVERSATIONS}_add"), {"title": "one", **inline})
    conversation = Conversation.objects.get()
    assert conversation.title == "one"
    change = reverse(f"{CONVERSATIONS}_change", args=[conversation.pk])
    admin_client.post(change, {"title": "two", **inline})
    conversation.refresh_from_db()
    assert conversation.title == "two"


def test_what_was_deleted_or_brought_back_meanwhile_stays_so(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
):
    conversation = ConversationFactory()
    change = reverse(f"{CONVERSATIONS}_change", args=[conversation.pk])
    edited = {"attachments-TOTAL_FORMS": 0, "attachments-INITIAL_FORMS": 0}
    save = ConversationAdmin.save_form
    for meanwhile in ("delete_softly", "undelete"):

        def saved(*args: Any, what: str = meanwhile, **options: Any) -> Any:
            getattr(Conversation.objects.all(), what)()
            return save(*args, **options)

        monkeypatch.setattr(ConversationAdmin, "save_form", saved)
        admin_client.post(change, {"title": meanwhile, **edited})
        conversation.refresh_from_db()
        assert conversation.title == meanwhile
        assert (conversation.deleted_at is None) == (meanwhile == "undelete")


def test_a_page_shows_the_newest_of_many_attachments_and_leads_to_all(
    admin_client: Client, attachment: Attachment, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("workspaces.admin.conversation.SHOWN", 2)
    conversation = attachment.conversation
    assert conversation
    newer = [
        attachments.attach(conversation, name=name, content=b"x") for name in "xyz"
    ]
    change = reverse(f"{CONVERSATIONS}_change", args=[conversation.pk])
    page = admin_client.get(change).content.decode()
    shown = [download_url(each) in page for each in (attachment, *newer)]
    assert shown == [False, False, True, True]
    assert "4, of which the newest 2 are below" in page
    everything = reverse(f"{ATTACHMENTS}_changelist")
    assert f"{everything}?conversation__id__exact={conversation.pk}" in page

    # Another was uploaded since the page was drawn.
    posted = {"attachments-TOTAL_FORMS": 2, "attachments-INITIAL_FORMS": 2}
    for number, each in enumerate(newer[:2]):
        posted[f"attachments-{number}-id"] = each.pk
        posted[f"attachments-{number}-conversation"] = conversation.pk
    answer = admin_client.post(change, {"title": "two", **posted})
    assert answer.status_code == 302
    conversation.refresh_from_db()
    assert conversation.title == "two"
    assert Attachment.objects.filter(conversation=conversation).count() == 4


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
