from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from acw import database
from acw.embedded import binaries, cluster
from acw.embedded.base import DatabaseWrapper

# The engine's own connections are meant, and pytest-django bars all of them otherwise.
pytestmark = pytest.mark.django_db


def wrapper_for(data_dir: Path) -> DatabaseWrapper:
    entry: dict[str, Any] = database.kind(embedded_in=data_dir).parse("")
    defaults = {key: connections["default"].settings_dict[key] for key in DEFAULTS}
    # The alias must be one that there is: receivers of connection_created look it up.
    return DatabaseWrapper({**defaults, **entry}, alias="default")


DEFAULTS = (
    "ATOMIC_REQUESTS",
    "AUTOCOMMIT",
    "TIME_ZONE",
    "USER",
    "PASSWORD",
    "HOST",
    "PORT",
    "TEST",
)


@pytest.fixture(scope="module")
def data_dir() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="acw-engine-") as directory:
        path = Path(directory) / "postgres"
        yield path
        server = cluster.at(path, database="acw")
        server.release()
        server.stop("immediate")


@pytest.fixture
def connection(data_dir: Path) -> Iterator[BaseDatabaseWrapper]:
    wrapper = wrapper_for(data_dir)
    yield wrapper
    wrapper.close()


def test_the_server_is_started_by_the_first_query_and_not_before(
    connection: BaseDatabaseWrapper, data_dir: Path
):
    server = cluster.at(data_dir, database="acw")
    server.stop()
    assert connection.vendor == "postgresql"
    assert not server.is_running()
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database()")
        assert cursor.fetchone() == ("acw",)
    assert server.is_running()


def test_a_server_that_stopped_is_started_by_the_next_connection(
    connection: BaseDatabaseWrapper, data_dir: Path
):
    connection.ensure_connection()
    cluster.at(data_dir, database="acw").stop()
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 42")
        assert cursor.fetchone() == (42,)


def test_a_server_that_cannot_start_is_a_database_that_is_away(tmp_path: Path):
    (tmp_path / "file").touch()
    unusable = wrapper_for(tmp_path / "file" / "postgres")
    with pytest.raises(OperationalError, match="cannot be made"):
        unusable.ensure_connection()


def test_dbshell_is_the_wheels_psql_on_this_server(connection: BaseDatabaseWrapper):
    arguments, _ = connection.client.settings_to_cmd_args_env(
        connection.settings_dict, ["--command", "SELECT 6 * 7", "--tuples-only"]
    )
    assert arguments[0] == str(binaries.program("psql"))
    printed = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "42"
