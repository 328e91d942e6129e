from __future__ import annotations

import os
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from acw.torture import preflight
from acw.torture.errors import TortureError


@pytest.fixture
def server() -> dict[str, Any]:
    return conninfo_to_dict(os.environ["DATABASE_URL"])


def test_the_tests_own_server_will_do(server: dict[str, Any]):
    preflight.check(server, workers=1, threads=1)


def test_a_server_that_takes_no_writes_is_refused(server: dict[str, Any]):
    read_only = {**server, "options": "-c default_transaction_read_only=on"}
    with pytest.raises(TortureError, match="standby or read-only"):
        preflight.check(read_only, workers=1, threads=1)


def test_a_pooler_is_refused(server: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preflight, "is_direct", lambda connection: False)
    with pytest.raises(TortureError, match="pooler"):
        preflight.check(server, workers=1, threads=1)


def test_too_few_sessions_are_told_with_how_many_are_wanted(server: dict[str, Any]):
    wanted = preflight.sessions(16, 3)
    with pytest.raises(TortureError, match=rf"16 workers.*{wanted} sessions.*room for"):
        preflight.check(server, workers=16, threads=3)


def test_the_limit_of_the_role_counts_too(server: dict[str, Any]):
    name = "torture_guest"
    with psycopg.connect(**server, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN CONNECTION LIMIT 5")
        try:
            with pytest.raises(TortureError, match="room for 4"):
                preflight.check({**server, "user": name}, workers=1, threads=1)
        finally:
            connection.execute(f"DROP ROLE {name}")
