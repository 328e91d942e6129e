"""Fixtures that tests of every package share."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from django.core.management.color import Style
from django.db import connection
from django.db.backends.postgresql.creation import DatabaseCreation
from django.db.backends.postgresql.operations import DatabaseOperations
from django.test import override_settings
from pytest_django.live_server_helper import LiveServer
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from jobs import wakeup
from jobs.testing import PATIENCE
from tests import driving
from tests.missing import cannot_run

_LONG = ("acceptance", "long")
_ALWAYS_THE_SAME = {"django_content_type", "auth_permission"}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Each process begins with its part of the long tests: what begins late, all others wait for in the end."""
    processes = int(getattr(config, "workerinput", {}).get("workercount", 1))
    is_long = [any(map(item.get_closest_marker, _LONG)) for item in items]
    long = list(itertools.compress(items, is_long))
    others = (item for item, skip in zip(items, is_long, strict=True) if not skip)
    dealt: list[pytest.Item] = []
    for number in range(processes):
        # As many as xdist gives to that process.
        size = (len(items) - len(dealt)) // (processes - number)
        share = long[number::processes]
        dealt += [*share, *itertools.islice(others, max(0, size - len(share)))]
    items[:] = dealt


@pytest.fixture(scope="session", autouse=True)
def only_what_a_test_has_filled_is_emptied() -> Iterator[None]:
    """Emptying every table, and making the permissions anew, took a fifth of the time of all tests."""
    flush = DatabaseOperations.sql_flush

    def of_rows(
        self: DatabaseOperations, style: Style, tables: Sequence[str], **options: bool
    ) -> list[str]:
        asked = " UNION ALL ".join(
            f"SELECT '{name}' WHERE EXISTS (SELECT FROM {self.quote_name(name)})"
            for name in set(tables) - _ALWAYS_THE_SAME
        )
        with connection.cursor() as cursor:
            cursor.execute(asked)
            filled = [name for (name,) in cursor.fetchall()]
        return flush(self, style, filled, **{**options, "allow_cascade": True})

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(DatabaseOperations, "sql_flush", of_rows)
        yield


@pytest.fixture(scope="session", autouse=True)
def sessions_that_were_cut_off_keep_no_database() -> Iterator[None]:
    """A server goes on for a while with what it was told by a connection or a process that a test has ended."""

    def drop(self: DatabaseCreation, test_database_name: str, verbosity: int) -> None:
        name = self.connection.ops.quote_name(test_database_name)
        with self._nodb_cursor() as cursor:  # type: ignore[attr-defined] # not in its stubs
            cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(DatabaseCreation, "_destroy_test_db", drop)
        yield


@pytest.fixture(scope="session", autouse=True)
def cheap_passwords() -> Iterator[None]:
    """To hash one as it should be takes longer than most tests."""
    with override_settings(
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]
    ):
        yield


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """A real browser: Debian's chromium and chromium-driver."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        cannot_run("chromium and chromedriver are not both installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    profile: Path = tmp_path_factory.mktemp("chromium")
    for argument in (
        "--headless",
        "--no-sandbox",  # its sandbox does not start as root
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--no-first-run",
        # It would call its maker otherwise.
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1280,1000",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


@pytest.fixture
def site(
    live_server: LiveServer,
    browser: webdriver.Chrome,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[str]:
    """The address of the site, at which the browser is logged in; what it kept of another test is gone."""
    address = driving.sign_in(browser, live_server, monkeypatch)
    browser.execute_script("sessionStorage.clear()")
    yield address
    # What was enqueued is told to workers over a connection that is kept for a while.
    wakeup.close(timeout=PATIENCE)
