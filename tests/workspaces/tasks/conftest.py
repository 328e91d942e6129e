from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs import wakeup


@pytest.fixture(autouse=True, scope="session")
def notifier_closed_before_the_database_goes(django_db_setup: None) -> Iterator[None]:
    yield
    wakeup.close(timeout=5)
