"""What tests do with a browser at the site of a live server."""

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


def press(browser: webdriver.Chrome, label: str) -> None:
    """Click the link or button of this name, once there is one."""
    named = f"//*[self::a or self::button][normalize-space()='{label}']"
    wait_until(lambda: browser.find_elements(By.XPATH, named), what=label)[-1].click()


def sideways(browser: webdriver.Chrome, selector: str = "html") -> int:
    """By how many pixels what is in it is wider than it is."""
    wider = browser.execute_script(
        "const found = document.querySelector(arguments[0]);"
        "return found ? found.scrollWidth - found.clientWidth : 0",
        selector,
    )
    return int(wider)
