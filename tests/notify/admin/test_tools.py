from __future__ import annotations

import pytest
from django.test import Client
from pytest_django.asserts import assertContains, assertNotContains

from tests.notify.admin.pages import change_page, client_with
from tests.notify.factories import EndpointFactory

pytestmark = pytest.mark.django_db
BUTTON = "Send test event"


def test_buttons_are_on_the_page_of_an_endpoint(admin: Client):
    assertContains(admin.get(change_page(EndpointFactory())), BUTTON)


def test_a_button_shows_to_those_who_may_press_it():
    client = client_with("view_webhookendpoint")
    assertNotContains(client.get(change_page(EndpointFactory())), BUTTON)


def test_whoever_may_not_see_the_page_may_not_press_its_buttons():
    endpoint = EndpointFactory()
    blind = client_with("test_webhookendpoint", "resend_webhookdelivery")

    assert {
        verb: blind.post(change_page(endpoint, verb)).status_code
        for verb in ("test", "checkup", "recover")
    } == {"test": 403, "checkup": 403, "recover": 403}
