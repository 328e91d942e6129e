from __future__ import annotations

import datetime as dt

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django.asserts import assertContains, assertNotContains, assertRedirects

from notify.models import Notification
from notify.views import PER_PAGE
from tests.notify.factories import AdminFactory, NotificationFactory, UserFactory

pytestmark = pytest.mark.django_db
INBOX = "/inbox/"


@pytest.fixture
def user(client: Client) -> User:
    """Somebody who may not enter the admin, logged in."""
    user: User = UserFactory(username="bob")
    client.force_login(user)
    return user


@pytest.mark.parametrize("path", [INBOX, "/inbox/read/", "/inbox/1/read/"])
def test_a_stranger_is_sent_to_log_in(client: Client, path: str):
    asked = client.get(path) if path == INBOX else client.post(path)

    assert asked.status_code == 302
    assert "login" in asked.url  # type: ignore[attr-defined] # a redirect has one


def test_each_sees_their_own_and_nobody_elses(client: Client, user: User):
    NotificationFactory(user=user, title="For Bob")
    NotificationFactory(title="For another")

    shown = client.get(INBOX)

    assertContains(shown, "For Bob")
    assertNotContains(shown, "For another")
    assertContains(shown, "1 unread")


def test_an_admin_has_an_inbox_in_the_console(client: Client):
    client.force_login(AdminFactory())

    assertContains(client.get(INBOX), "No notifications yet")


def test_an_empty_inbox_says_so(client: Client, user: User):
    shown = client.get(INBOX)

    assertContains(shown, "No notifications yet. What happens to your tasks,")
    assertContains(shown, "Nothing unread")
    assertNotContains(shown, "Mark all as read")


def test_unread_comes_first_and_says_so_in_words(client: Client, user: User):
    NotificationFactory(user=user, title="Newer, read", read_at=timezone.now())
    older = timezone.now() - dt.timedelta(days=2)
    NotificationFactory(user=user, title="Older, unread", created_at=older)

    text = client.get(INBOX).content.decode()

    assert text.index("Older, unread") < text.index("Newer, read")
    assert text.count('class="inbox-badge">Unread<') == 1


def test_what_others_wrote_is_shown_as_text(client: Client, user: User):
    NotificationFactory(
        user=user, title="<b>bold</b>", body="<script>alert(1)</script>"
    )

    shown = client.get(INBOX)

    assertNotContains(shown, "<b>")
    assertNotContains(shown, "<script>alert")
    assertContains(shown, "&lt;script&gt;alert(1)")


def test_what_cannot_be_seen_is_shown_by_a_mark(client: Client, user: User):
    NotificationFactory(
        user=user, title="pay\u202egnp.exe", body="one\ntwo\x1b[2J\u2066"
    )

    shown = client.get(INBOX)

    assertContains(shown, "pay\ufffdgnp.exe")
    assertContains(shown, "one\ntwo\ufffd[2J\ufffd")
    for unseen in ("\u202e", "\u2066", "\x1b"):
        assertNotContains(shown, unseen)


def test_a_long_body_is_folded(client: Client, user: User):
    NotificationFactory(user=user, body="word " * 200)

    assertContains(client.get(INBOX), "<details>")


def test_a_title_leads_to_the_thing_on_this_site_and_nowhere_else(
    client: Client, user: User
):
    User.objects.filter(pk=user.pk).update(is_staff=True)
    NotificationFactory(user=user, data={"url": "/admin/jobs/job/1/change/"})
    NotificationFactory(user=user, data={"url": "https://evil.example/"})

    shown = client.get(INBOX)

    assertContains(shown, '<a href="/admin/jobs/job/1/change/">')
    assertNotContains(shown, "evil.example")


def test_whoever_the_console_does_not_let_in_is_not_led_there(
    client: Client, user: User
):
    NotificationFactory(user=user, data={"url": "/admin/jobs/job/1/change/"})

    assertNotContains(client.get(INBOX), "/admin/jobs/job/1/change/")


def test_one_is_marked_as_read(client: Client, user: User):
    one = NotificationFactory(user=user)
    other = NotificationFactory(user=user)

    marked = client.post(f"/inbox/{one.pk}/read/", {"page": "2"})

    assertRedirects(marked, f"{INBOX}?page=2")
    assert list(Notification.objects.unread()) == [other]


def test_another_users_notification_does_not_exist(client: Client, user: User):
    theirs = NotificationFactory()

    assert client.post(f"/inbox/{theirs.pk}/read/").status_code == 404
    theirs.refresh_from_db()
    assert theirs.read_at is None


def test_all_that_were_shown_are_marked_as_read(client: Client, user: User):
    shown = NotificationFactory.create_batch(2, user=user)
    later = NotificationFactory(user=user)
    theirs = NotificationFactory()

    marked = client.post("/inbox/read/", {"newest": str(shown[-1].pk)}, follow=True)

    assertContains(marked, "Marked as read: 2.")
    assert set(Notification.objects.unread()) == {later, theirs}


@pytest.mark.parametrize("newest", ["", "x", "-1", "٣٣٣", "9" * 5000], ids=len)
def test_without_a_sound_newest_all_are_marked(client: Client, user: User, newest: str):
    NotificationFactory(user=user)

    client.post("/inbox/read/", {"newest": newest, "page": "x"})

    assert not Notification.objects.unread().exists()


@pytest.mark.parametrize("path", ["/inbox/read/", "/inbox/1/read/"])
def test_reading_is_marked_by_post_alone_and_with_a_token(
    client: Client, user: User, path: str
):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user)

    assert client.get(path).status_code == 405
    assert strict.post(path).status_code == 403


def test_a_long_inbox_has_pages(
    client: Client, user: User, django_assert_max_num_queries
):
    NotificationFactory.create_batch(PER_PAGE + 1, user=user)

    with django_assert_max_num_queries(8):
        first = client.get(INBOX)
    last = client.get(f"{INBOX}?page=2")

    assertContains(first, 'href="?page=2"')
    assertContains(first, 'class="inbox-item', count=PER_PAGE)
    assertContains(last, '<span class="inbox-page" aria-current="page">2</span>')
    assert client.get(f"{INBOX}?page=99").status_code == 200
    assert client.get(f"{INBOX}?page=x").status_code == 200


def test_one_that_stands_for_several_says_for_how_many(client: Client, user: User):
    NotificationFactory(user=user, count=3)
    NotificationFactory(user=user)

    shown = client.get(INBOX)

    assertContains(shown, "times since then", count=1)
    assertContains(shown, "3 times since then")
