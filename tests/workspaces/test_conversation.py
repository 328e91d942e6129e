from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils import timezone

from tests.workspaces.factories import (
    AttachmentFactory,
    ConversationFactory,
    UserFactory,
    WorktreeFactory,
)
from workspaces.models import Attachment, Conversation

pytestmark = pytest.mark.django_db


def test_operators_know_the_tables_by_these_names():
    assert Conversation._meta.db_table == "conversations"
    assert Attachment._meta.db_table == "attachments"


def test_a_conversation_outlives_its_owner_and_its_worktree():
    conversation = ConversationFactory(owner=UserFactory(), worktree=WorktreeFactory())
    conversation.owner.delete()
    conversation.worktree.delete()
    conversation.refresh_from_db()
    assert (conversation.owner, conversation.worktree) == (None, None)


def test_one_with_attachments_cannot_be_deleted_but_softly():
    conversation = AttachmentFactory().conversation
    with pytest.raises(ProtectedError):
        conversation.delete()


def test_an_attachment_is_an_orphan_exactly_where_it_says_since_when():
    refused = pytest.raises(IntegrityError, match="attachments_orphaned_at_without")
    with refused, transaction.atomic():
        AttachmentFactory(orphaned_at=timezone.now())
    with refused, transaction.atomic():
        AttachmentFactory(conversation=None)
