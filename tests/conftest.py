"""Fixtures that tests of every package share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests.missing import cannot_run


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
