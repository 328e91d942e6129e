"""What an operator does with tasks, in a real browser: the admin's own JavaScript is part of it."""

from __future__ import annotations

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from jobs.testing import wait_until
from tests.driving import press, sideways, told
from tests.workspaces.tasks.market import (
    HOUR,
    contest,
    entry,
    held,
    now,
    pass_and_work,
    publish,
    reviewing,
)
from workspaces.tasks.models import Task
from workspaces.tasks.states import Status

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

WIDE, NARROW = (1280, 1000), (400, 900)


def test_work_is_looked_at_and_rejected_with_a_reason(
    site: str, browser: webdriver.Chrome
):
    task = reviewing(title="Sort the lists")
    browser.get(f"{site}/admin/tasks/task/?status=reviewing")
    press(browser, "Sort the lists")
    wait_until(
        lambda: browser.find_elements(By.CSS_SELECTOR, ".timeline li"),
        what="the history",
    )
    press(browser, "Reject")
    reason = wait_until(
        lambda: browser.find_elements(By.NAME, "reason"), what="the question"
    )
    press(browser, "Reject")
    wait_until(
        lambda: browser.find_elements(By.CSS_SELECTOR, ".errorlist"),
        what="a rejection without a reason is refused",
    )
    reason = browser.find_elements(By.NAME, "reason")
    reason[0].send_keys("It does not sort")
    press(browser, "Reject")
    assert told(browser) == f"Task {task.pk} is held now."
    newest = browser.find_element(By.CSS_SELECTOR, ".timeline li").text
    assert "ada (operator) rejected the work" in newest
    assert "It does not sort" in newest
    assert now(task).status == Status.HELD


def test_the_winner_of_a_contest_is_picked(site: str, browser: webdriver.Chrome):
    task = contest("bob", "carol")
    pass_and_work(10 * HOUR)
    browser.get(f"{site}/admin/tasks/task/{task.pk}/change/")
    press(browser, "Pick a winner")
    chosen = wait_until(
        lambda: browser.find_elements(By.NAME, "submission"), what="the question"
    )
    Select(chosen[0]).select_by_value(str(entry(task, "carol").pk))
    press(browser, "Pick a winner")
    assert told(browser) == f"Task {task.pk} is accepted now."
    assert entry(task, "carol").decision == "accepted"


def test_selected_tasks_are_cancelled_after_a_question(
    site: str, browser: webdriver.Chrome
):
    publish()
    publish()
    browser.get(f"{site}/admin/tasks/task/")
    browser.find_element(By.ID, "action-toggle").click()
    Select(browser.find_element(By.NAME, "action")).select_by_value("cancel_selected")
    browser.find_element(By.NAME, "index").click()
    reason = wait_until(
        lambda: browser.find_elements(By.NAME, "reason"), what="the question"
    )
    reason[0].send_keys("Not needed")
    press(browser, "Cancel: all 2")
    assert told(browser) == "2 cancelled"
    assert set(Task.objects.values_list("status", flat=True)) == {"cancelled"}


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_page_is_read_without_scrolling_sideways(
    site: str, browser: webdriver.Chrome, size: tuple[int, int]
):
    task = held(title="x" * 200, description="y" * 2_000)
    browser.set_window_size(*size)
    try:
        for path in (
            f"task/{task.pk}/change/",
            f"task/{task.pk}/cancel/",
            f"agent/{task.publisher_id}/change/",
        ):
            browser.get(f"{site}/admin/tasks/{path}")
            assert sideways(browser) == 0
    finally:
        browser.set_window_size(*WIDE)
