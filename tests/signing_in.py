"""A browser that is logged in at the site of a live server."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connections
from pytest_django.live_server_helper import LiveServer
from selenium import webdriver
from selenium.webdriver.common.by import By

from jobs.testing import wait_until

PASSWORD = "not-guessed-1"


def sign_in(
    browser: webdriver.Chrome, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Log in as the superuser ``ada``, who is made for it; the site's address is returned."""
    # The browser keeps its connections to the server, whose threads must not keep theirs to the database.
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)
    User.objects.create_superuser("ada", password=PASSWORD)
    browser.get(f"{live_server.url}/admin/login/")
    browser.find_element(By.NAME, "username").send_keys("ada")
    browser.find_element(By.NAME, "password").send_keys(PASSWORD)
    browser.find_element(By.CSS_SELECTOR, "[type=submit]").click()
    wait_until(lambda: "Overview" in browser.title, what="ada is logged in")
    return live_server.url


def told(browser: webdriver.Chrome) -> str:
    """What the page tells after an action, once it does."""
    found = wait_until(
        lambda: browser.find_elements(By.CSS_SELECTOR, ".messagelist li"),
        what="a message",
    )
    return found[0].text
