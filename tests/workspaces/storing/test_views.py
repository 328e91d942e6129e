from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.workspaces.factories import ConversationFactory, UserFactory
from workspaces import attachments
from workspaces.models import Attachment, Conversation

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> User:
    user: User = UserFactory(username="owner")
    return user


@pytest.fixture
def url(owner: User) -> str:
    attachment = attachments.attach(
        ConversationFactory(owner=owner), name="a.txt", content=b"hello"
    )
    return f"/attachments/{attachment.pk}/"


def test_the_owner_saves_it(client: Client, owner: User, url: str):
    client.force_login(owner)
    response = client.get(url)
    assert b"".join(response) == b"hello"
    assert response["Content-Disposition"] == 'attachment; filename="a.txt"'
    response = client.head(url)
    assert response["Content-Length"] == "5"
    response.close()


def test_who_is_not_logged_in_is_asked_to(client: Client, url: str):
    response = client.get(url)
    assert response.status_code == 302
    assert response["Location"] == f"/login/?next={url}"


def test_another_users_does_not_exist(client: Client, url: str):
    client.force_login(UserFactory())
    refused = client.get(url)
    assert refused.status_code == 404
    Attachment.objects.all().delete()
    assert client.get(url).content == refused.content
    assert client.get("/attachments/99999999999999999999999/").status_code == 404


def test_neither_does_one_of_a_deleted_conversation(
    client: Client, owner: User, url: str
):
    client.force_login(owner)
    Conversation.objects.all().delete_softly()
    assert client.get(url).status_code == 404
    Conversation.objects.all().undelete()
    assert client.get(url).getvalue() == b"hello"


def test_it_is_only_read(client: Client, owner: User, url: str):
    client.force_login(owner)
    assert client.post(url).status_code == 405
    assert client.delete(url).status_code == 405
    assert Attachment.objects.exists()
