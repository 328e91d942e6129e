"""The database engine `acw.embedded`: Django's own for PostgreSQL, whose server is
started when a connection is first asked for, and again if it has died since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.backends.postgresql import base, client
from django.db.utils import OperationalError

from acw.embedded import binaries, cluster
from acw.embedded.cluster import Cluster
from acw.embedded.errors import ClusterError

# The test runner changes the entry's NAME; the server makes this one.
DATABASE = "acw"


def server_of(settings: Mapping[str, Any]) -> Cluster:
    """Return the server that an entry of DATABASES with this engine means."""
    return cluster.at(settings["EMBEDDED_DATA_DIR"], database=DATABASE)


def _running_server(settings: Mapping[str, Any]) -> dict[str, str]:
    """Start the server unless it runs, and return how libpq reaches it."""
    server = server_of(settings)
    try:
        server.ensure_running()
        return server.connection_parameters()
    except (ClusterError, OSError) as error:
        # What Django and the worker know as "the database is away".
        raise OperationalError(str(error)) from error


class DatabaseClient(client.DatabaseClient):
    """`manage.py dbshell`, with the wheel's psql."""

    @classmethod
    def settings_to_cmd_args_env(
        cls, settings_dict: dict[str, Any], parameters: Iterable[str]
    ) -> tuple[list[str], dict[str, str] | None]:
        where = _running_server(settings_dict)
        located = settings_dict | {key.upper(): value for key, value in where.items()}
        arguments, environment = super().settings_to_cmd_args_env(located, parameters)
        return [str(binaries.program("psql")), *arguments[1:]], environment


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to the embedded server.

    Only asking for connection parameters starts it, so that what needs no database
    (`check`, the type checker) never does.
    """

    client_class = DatabaseClient

    def get_connection_params(self) -> dict[str, Any]:
        where = _running_server(self.settings_dict)
        return super().get_connection_params() | where
