from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

pytestmark = pytest.mark.django_db

PASSWORD = "not-guessed-1"


@pytest.fixture
def owner() -> User:
    """A user who is not of the staff: the admin lets nobody like this in."""
    return User.objects.create_user("owner", password=PASSWORD)


def test_a_user_who_is_not_of_the_staff_gets_to_the_inbox(client: Client, owner: User):
    inbox = reverse("notify:inbox")
    asked = client.get(inbox)
    assert asked["Location"] == f"{reverse('login')}?next={inbox}"
    page = client.get(asked["Location"])
    assert "Log in" in page.content.decode()
    signed_in = client.post(
        asked["Location"], {"username": "owner", "password": PASSWORD, "next": inbox}
    )
    assert signed_in["Location"] == inbox
    assert client.get(inbox).status_code == 200


def test_a_wrong_password_is_said_to_be_one(client: Client, owner: User):
    page = client.post(reverse("login"), {"username": "owner", "password": "wrong"})
    assert page.status_code == 200
    assert "correct username and password" in page.content.decode()


def test_no_other_site_is_led_to(client: Client, owner: User):
    answer = client.post(
        f"{reverse('login')}?next=https://elsewhere.example/",
        {"username": "owner", "password": PASSWORD},
    )
    assert answer["Location"] == reverse("notify:inbox")


def test_signing_out_is_a_post_and_ends_the_session(client: Client, owner: User):
    client.force_login(owner)
    assert client.get(reverse("logout")).status_code == 405
    assert client.post(reverse("logout"))["Location"] == reverse("login")
    assert client.get(reverse("notify:inbox")).status_code == 302


def test_the_inbox_has_a_way_out(client: Client, owner: User):
    client.force_login(owner)
    assert reverse("logout") in client.get(reverse("notify:inbox")).content.decode()
