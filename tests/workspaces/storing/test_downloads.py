from __future__ import annotations

from contextlib import closing
from urllib.parse import unquote

import pytest
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.core.files.storage import storages
from django.utils import timezone
from pytest_django import Settings

from tests.workspaces.factories import ConversationFactory, UserFactory
from tests.workspaces.storages import any_storage, lose
from workspaces import attachments
from workspaces.models import Attachment
from workspaces.storing.downloads import download, may_see
from workspaces.storing.storage import ALIAS

__all__ = ["any_storage"]

pytestmark = pytest.mark.django_db

HTML = b"<script>alert(1)</script>"


@pytest.fixture
def owner() -> User:
    user: User = UserFactory(username="owner")
    return user


@pytest.fixture
def attachment(owner: User) -> Attachment:
    return attachments.attach(
        ConversationFactory(owner=owner),
        name='ä "<b>".html',
        content=HTML,
        content_type="text/html",
    )


@pytest.mark.usefixtures("any_storage")
def test_it_is_saved_and_never_shown(attachment: Attachment):
    with closing(download(attachment)) as response:
        assert b"".join(response) == HTML
    assert response.status_code == 200
    assert dict(response.items()) == {
        "Content-Type": "application/octet-stream",
        "Content-Length": str(len(HTML)),
        "Content-Disposition": 'attachment; filename="a _<b>_.html"; '
        "filename*=utf-8''%C3%A4%20%22%3Cb%3E%22.html",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("notes 1.txt", "notes 1.txt"),
        ('a"; filename=b.exe', "a_; filename=b.exe"),
        ("a\\b", "a_b"),
        ("%41.txt", "_41.txt"),
        ("résumé.txt", "resume.txt"),
        ("名前.txt", "__.txt"),
        ("by hand\r\nX-Odd: 1", "by hand__X-Odd: 1"),
        ("\N{TWO DOT LEADER}", "attachment"),
        ("\N{COMBINING ACUTE ACCENT}", "attachment"),
        ("\N{FULLWIDTH LATIN CAPITAL LETTER C}ON", "attachment"),
    ],
)
def test_whoever_saves_it_finds_a_name_whatever_that_is(
    attachment: Attachment, name: str, plain: str
):
    """Some clients, curl among them, know only the plain form, and stumble over quotes in it."""
    attachment.name = name
    with closing(download(attachment)) as response:
        said = response["Content-Disposition"]
    kind, first, *rest = said.split('"')
    assert (kind, first) == ("attachment; filename=", plain)
    if name == plain:
        assert rest == [""]
    else:
        (encoded,) = rest
        assert unquote(encoded.removeprefix("; filename*=utf-8''")) == name


@pytest.mark.usefixtures("any_storage")
def test_missing_bytes_are_said_to_be_missing(attachment: Attachment):
    lose(attachment)
    response = download(attachment)
    assert response.status_code == 404
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert b"".join(response) == b"Its bytes are missing."


def test_a_name_that_leads_out_of_the_storage_is_missing(attachment: Attachment):
    attachment.file.name = "../../victim"
    assert download(attachment).status_code == 404


def test_bytes_on_another_host_are_said_to_be_there(
    attachment: Attachment, settings: Settings
):
    settings.ACW_HOST = "elsewhere"
    response = download(attachment)
    assert response.status_code == 404
    assert b"on the disk of host test-host" in b"".join(response)


def test_a_storage_that_is_down_is_an_error_and_not_a_missing_file(
    attachment: Attachment,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    def refuse(name: str, mode: str) -> None:
        raise ConnectionError("https://user:SECRET@bucket.example/")

    monkeypatch.setattr(storages[ALIAS], "open", refuse)
    response = download(attachment)
    assert response.status_code == 503
    assert b"try again later" in b"".join(response)
    (record,) = (each for each in caplog.records if each.msg == "attachment.failed")
    assert "SECRET" not in record.__dict__["error"]


def staff(name: str, *permissions: str) -> User:
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return user


def test_its_owner_and_staff_who_may_see_it(attachment: Attachment, owner: User):
    assert may_see(owner, attachment)
    assert may_see(staff("one", "view_attachment"), attachment)
    assert not may_see(staff("two", "view_conversation"), attachment)
    assert not may_see(UserFactory(), attachment)
    assert not may_see(AnonymousUser(), attachment)
    no_staff = staff("three", "view_attachment")
    no_staff.is_staff = False
    assert not may_see(no_staff, attachment)


def test_of_a_deleted_conversation_and_of_none_staff_alone(
    attachment: Attachment, owner: User
):
    conversation = attachment.conversation
    assert conversation is not None
    conversation.deleted_at = timezone.now()
    assert not may_see(owner, attachment)
    conversation.deleted_at = conversation.owner = None
    assert not may_see(AnonymousUser(), attachment)
    attachment.conversation = None
    assert not may_see(owner, attachment)
    assert may_see(staff("one", "view_attachment"), attachment)
