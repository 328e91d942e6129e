from __future__ import annotations

import pytest

from notify.models import Notification
from tests.notify.factories import NotificationFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("data", "link"),
    [
        ({"url": "/admin/jobs/job/1/change/"}, "/admin/jobs/job/1/change/"),
        ({"url": "https://evil.example/"}, ""),
        ({"url": "//evil.example/"}, ""),
        ({"url": "/\\evil.example/"}, ""),
        ({"url": "javascript:alert(1)"}, ""),
        ({"url": "admin/"}, ""),
        ({"url": 7}, ""),
        ({}, ""),
        ([], ""),
    ],
)
def test_only_a_path_on_this_site_becomes_a_link(data, link: str):
    assert Notification(data=data).link == link


def test_a_notification_reads_as_its_title():
    assert str(NotificationFactory(title="It happened")) == "It happened"
