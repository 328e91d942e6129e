from __future__ import annotations

import pytest
from django.contrib.sessions.models import Session

from jobs.identifiers import uuid7
from notify import links
from tests.notify.factories import EndpointFactory


@pytest.mark.django_db
def test_a_row_that_the_admin_shows_has_a_page():
    endpoint = EndpointFactory()

    page = f"/admin/notify/webhookendpoint/{endpoint.pk}/change/"
    assert links.admin_page(endpoint) == page


def test_deliveries_and_lists_of_dead_ones_have_pages():
    job_id = uuid7()

    page = f"/admin/notify/webhookdelivery/{job_id}/change/"
    assert links.delivery_page(job_id) == page
    listed = "/admin/notify/webhookdelivery/?status=dead"
    assert links.dead_deliveries(None) == listed
    assert links.dead_deliveries("a&b") == f"{listed}&endpoint=a%26b"


def test_a_row_that_the_admin_does_not_show_has_none():
    assert links.admin_page(Session(session_key="x")) == ""
