from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse


def test_the_front_door_leads_to_the_console(client: Client):
    response = client.get("/")
    assert (response.status_code, response["Location"]) == (302, "/admin/")


@pytest.mark.django_db
def test_the_console_asks_for_a_login(client: Client):
    response = client.get(reverse("admin:index"))
    assert response["Location"] == "/admin/login/?next=/admin/"


@pytest.mark.django_db  # a response's end looks after the connections
def test_the_consoles_css_is_served_with_debug_off(client: Client):
    response = client.get("/static/admin/css/base.css")
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/css")
    assert b"".join(response.streaming_content)  # type: ignore[attr-defined]
    response.close()
