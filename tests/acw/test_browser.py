"""What the lists of the console have in common, in a real browser."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.urls import reverse
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from jobs.testing import wait_until
from tests.driving import sideways
from tests.jobs.factories import JobFactory, RunnerStateFactory, WorkerProcessFactory
from tests.notify import factories as notify
from tests.workspaces.admin.gallery import HOSTILE, LONG, fill
from tests.workspaces.tasks.market import held

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

WIDE, NARROW = (1280, 1000), (420, 900)


def fill_queue_and_mail() -> None:
    JobFactory(ref_id=LONG, queue="q" * 60)
    JobFactory(dead=True, last_error=HOSTILE + "e" * 9_000)
    RunnerStateFactory(name="workspace_maintenance", last_error=LONG)
    WorkerProcessFactory(host="h" * 60, lost=True)
    endpoint = notify.EndpointFactory(name="n" * 60)
    notify.NotificationFactory(title="t" * 190)
    notify.AttemptFactory(endpoint=endpoint, cause="c" * 190)
    notify.RecoveryFactory(endpoint=endpoint)
    notify.delivery_to(endpoint, dead=True, last_error=HOSTILE + "e" * 9_000)


def test_no_list_is_scrolled_sideways_with_whatever_is_in_it(
    site: str, browser: webdriver.Chrome
):
    fill()
    fill_queue_and_mail()
    held(title="x" * 200)
    lists = [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model in admin.site._registry
    ]
    wider = {}
    for path in lists:
        browser.get(site + path)
        wider[path] = max(sideways(browser), sideways(browser, ".results"))
    assert {path: by for path, by in wider.items() if by > 0} == {}


def test_long_titles_and_bodies_are_read_without_scrolling_sideways(
    site: str, browser: webdriver.Chrome
):
    told = notify.NotificationFactory(
        title="t" * 190, body="b" * 3_000, data={"d": "d" * 500}
    )
    endpoint = notify.EndpointFactory(name="n" * 60)
    try:
        for size in (WIDE, NARROW):
            browser.set_window_size(*size)
            for row in (told, endpoint):
                name = f"admin:notify_{row._meta.model_name}_change"
                browser.get(site + reverse(name, args=[row.pk]))
                assert sideways(browser) <= 0, (name, size)
    finally:
        browser.set_window_size(*WIDE)


def test_filters_are_unfolded_chosen_and_cleared_by_the_keyboard_too(
    site: str, browser: webdriver.Chrome
):
    JobFactory(dead=True)
    JobFactory(cancelled=True)
    browser.get(f"{site}/admin/jobs/job/")
    summary = browser.find_element(By.CSS_SELECTOR, "#filters > summary")
    assert summary.text == "Filter"
    summary.send_keys(Keys.ENTER)
    browser.find_element(By.LINK_TEXT, "dead").send_keys(Keys.ENTER)
    summary = wait_until(
        lambda: browser.find_elements(By.CSS_SELECTOR, "#filters > summary b"),
        what="the filter is told",
    )[0]
    assert summary.text == "status"
    assert len(browser.find_elements(By.CSS_SELECTOR, "#result_list tbody tr")) == 1
    # As it was left: unfolded.
    assert browser.find_element(By.LINK_TEXT, "cancelled").is_displayed()
    browser.find_element(By.LINK_TEXT, "Clear all filters").send_keys(Keys.ENTER)
    wait_until(
        lambda: (
            len(browser.find_elements(By.CSS_SELECTOR, "#result_list tbody tr")) == 2
        ),
        what="all rows",
    )
