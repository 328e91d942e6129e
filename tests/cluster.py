"""Pytest plugin: a PostgreSQL server of the tests' own, and an environment of their own.

Loaded with `-p tests.cluster`, so that it runs before pytest-django reads the settings.
With ACW_TEST_DATABASE_URL set, that server is used instead. What the caller has set for
ACW, git and libpq does not reach the tests, nor the processes that they start.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography.fernet import Fernet

from acw.embedded.cluster import Cluster
from acw.env import PREFIXES

SERVER_URL_VARIABLE = "ACW_TEST_DATABASE_URL"
# Nothing here outlives the tests, so nothing waits for the disk.
THROWAWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

_DIRECTORY_PREFIX = "acw-tests-"
_FORGOTTEN_SECONDS = 3600
_CLEARED_PREFIXES = (*PREFIXES, "GIT_", "PG")
_CLEARED = {"DEBUG", "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS"}


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    server_url = os.environ.get(SERVER_URL_VARIABLE)
    directory = Path(tempfile.mkdtemp(prefix=_DIRECTORY_PREFIX))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    if not server_url:
        _remove_forgotten(directory.parent)
        server_url = _start_server(directory)
    for name in list(os.environ):
        if name.startswith(_CLEARED_PREFIXES) or name in _CLEARED:
            del os.environ[name]
    os.environ.update(
        {
            "DATABASE_URL": server_url,
            "SECRET_KEY": "signs-nothing-that-outlives-the-tests-0123456789-abcdef",
            "ACW_ENV_FILE": "",
            "ACW_STATE_DIR": str(directory),
            "ACW_DATA_DIR": str(directory / "data"),
            "ACW_ENCRYPTION_KEYS": Fernet.generate_key().decode(),
            "ACW_HOST": "test-host",
            # As in the embedded mode: tests serve plain HTTP, receive webhooks on this
            # machine and fetch from repositories beside them.
            "ACW_HTTPS": "false",
            "ALLOWED_HOSTS": "localhost,127.0.0.1,[::1]",
            "ACW_GIT_PROTOCOLS": "https,ssh,file",
            "NOTIFY_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8,::1/128",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
        }
    )


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_auto_num_workers() -> int:
    """Twice as many processes as there are processors: much of the time goes by in waiting for other processes."""
    return 2 * (os.cpu_count() or 1)


def _start_server(directory: Path) -> str:
    cluster = Cluster(
        directory / "postgres",
        database="acw",
        settings={
            "max_connections": "200",
            "max_prepared_transactions": "10",
            **THROWAWAY,
        },
    )
    cluster.ensure_running()
    where = cluster.connection_parameters()
    return (
        f"postgresql://{where['user']}@:{where['port']}/acw"
        f"?host={quote(where['host'], safe='')}"
    )


def _remove_forgotten(parent: Path) -> None:
    """Stop and remove what runs that were killed have left behind."""
    for directory in parent.glob(f"{_DIRECTORY_PREFIX}*"):
        try:
            if time.time() - directory.stat().st_mtime > _FORGOTTEN_SECONDS:
                cluster = Cluster(directory / "postgres")
                cluster.hold()
                if cluster.release():  # nobody else uses it
                    shutil.rmtree(directory, ignore_errors=True)
        except OSError:
            continue  # another user's, or gone meanwhile
