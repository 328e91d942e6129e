from __future__ import annotations

import pytest
from django.contrib.sessions.models import Session

from notify import links
from tests.notify.factories import EndpointFactory


@pytest.mark.django_db
def test_a_row_that_the_admin_shows_has_a_page():
    endpoint = EndpointFactory()

    page = f"/admin/notify/webhookendpoint/{endpoint.pk}/change/"
    assert links.admin_page(endpoint) == page


def test_a_row_that_the_admin_does_not_show_has_none():
    assert links.admin_page(Session(session_key="x")) == ""
