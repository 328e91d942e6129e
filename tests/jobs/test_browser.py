"""What an operator does with dead jobs, in a real browser: the admin's own JavaScript is part of it."""

from __future__ import annotations

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from jobs.models import Job
from jobs.testing import wait_until
from tests.driving import told
from tests.jobs.factories import AttemptFactory, JobFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_dead_job_is_looked_at_and_retried_by_its_button(
    site: str, browser: webdriver.Chrome
):
    job = JobFactory(dead=True)
    AttemptFactory(job=job, traceback="Traceback: in the handler")
    browser.get(f"{site}/admin/jobs/job/{job.pk}/change/")
    trace = browser.find_element(By.CSS_SELECTOR, "details pre")
    assert not trace.is_displayed()
    browser.find_element(By.TAG_NAME, "summary").click()
    assert trace.text == "Traceback: in the handler"
    browser.find_element(By.XPATH, "//button[normalize-space()='Retry']").click()
    assert told(browser) == "1 retried"
    badge = browser.find_element(By.CSS_SELECTOR, ".field-status_badge .state")
    assert badge.text == "pending"
    job.refresh_from_db()
    assert job.status == "pending"


def test_all_jobs_that_match_the_filter_are_retried_after_a_confirmation(
    site: str, browser: webdriver.Chrome
):
    JobFactory.create_batch(60, dead=True)
    JobFactory(cancelled=True)
    browser.get(f"{site}/admin/jobs/job/?status=dead")
    browser.find_element(By.ID, "action-toggle").click()
    browser.find_element(By.CSS_SELECTOR, ".question a").click()
    Select(browser.find_element(By.NAME, "action")).select_by_value("retry")
    browser.find_element(By.NAME, "index").click()
    confirm = wait_until(
        lambda: browser.find_elements(By.CSS_SELECTOR, ".confirm button"),
        what="the question",
    )[0]
    assert confirm.text == "Retry: all 60"
    assert Job.objects.dead().count() == 60
    confirm.click()
    assert told(browser) == "60 retried"
    assert Job.objects.pending().count() == 60
    assert "status=dead" in browser.current_url


def test_a_running_job_is_asked_to_stop_by_its_button(
    site: str, browser: webdriver.Chrome
):
    job = JobFactory(running=True, leased_by="host:1:ab")
    browser.get(f"{site}/admin/jobs/job/{job.pk}/change/")
    browser.find_element(By.XPATH, "//button[normalize-space()='Cancel']").click()
    assert told(browser) == "1 asked to stop: it is running on host:1:ab"
    badges = browser.find_elements(By.CSS_SELECTOR, ".field-status_badge .state")
    assert [badge.text for badge in badges] == ["running", "asked to stop"]
    assert browser.find_elements(By.CSS_SELECTOR, ".object-tools .verb") == []
    job.refresh_from_db()
    assert job.cancel_requested_at is not None
    asked = browser.find_element(By.CSS_SELECTOR, ".field-cancel_requested_at")
    assert f"{job.cancel_requested_at:%H:%M}" in asked.text
    browser.get(f"{site}/admin/jobs/job/?stop=asked")
    assert len(browser.find_elements(By.CSS_SELECTOR, "#result_list tbody tr")) == 1
