from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils.datastructures import MultiValueDict

from tests.workspaces.factories import ConversationFactory
from workspaces.models import Conversation
from workspaces.storing.forms import AttachmentForm

pytestmark = pytest.mark.django_db


def form(conversation: Conversation | None, content_type: str) -> AttachmentForm:
    upload = SimpleUploadedFile("a.txt", b"x", content_type)
    data = {"conversation": conversation.pk if conversation else ""}
    return AttachmentForm(data, MultiValueDict({"upload": [upload]}))


def test_an_upload_for_a_conversation_is_valid():
    assert form(ConversationFactory(), "text/plain").is_valid()


def test_without_a_conversation_it_is_not():
    assert "conversation" in form(None, "text/plain").errors


def test_what_attach_would_refuse_is_an_error_of_the_upload():
    assert "upload" in form(ConversationFactory(), "x" * 300).errors


def test_without_an_upload_it_is_not():
    empty = AttachmentForm({"conversation": ConversationFactory().pk}, MultiValueDict())
    assert "upload" in empty.errors
