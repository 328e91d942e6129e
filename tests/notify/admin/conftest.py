from __future__ import annotations

import pytest
from django.test import Client

from tests.notify.factories import AdminFactory


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(AdminFactory(username="alice"))
    return client
