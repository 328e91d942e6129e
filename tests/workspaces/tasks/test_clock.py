from __future__ import annotations

import pytest
from django.db import connection

from workspaces.tasks import clock


@pytest.mark.django_db
def test_time_goes_on_within_a_transaction():
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        (began,) = cursor.fetchone()
    first = clock.now()
    assert began < first < clock.now()
    assert first.tzinfo is not None
