"""What an operator does with a receiver that has failed, in a real browser."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from django.utils import timezone
from selenium import webdriver
from selenium.webdriver.common.by import By

from jobs.models import Job
from jobs.testing import wait_until
from notify.models import WebhookEndpoint, WebhookRecovery
from tests.driving import press, told
from tests.notify.factories import AttemptFactory, EndpointFactory, delivery_to

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def failing() -> WebhookEndpoint:
    """An endpoint that is held back, with three deliveries that died and one that waits."""
    endpoint: WebhookEndpoint = EndpointFactory(
        name="chat",
        breaker=WebhookEndpoint.Breaker.OPEN,
        breaker_reason="5 failures in a row: HTTP 503 Service Unavailable",
        breaker_until=timezone.now() + dt.timedelta(minutes=7),
    )
    for _ in range(3):
        delivery = delivery_to(endpoint, dead=True)
        for number in (1, 2):
            AttemptFactory(
                endpoint=endpoint,
                job_id=delivery.pk,
                number=number,
                verdict="retry",
                status=503,
                cause="HTTP 503 Service Unavailable",
                excerpt="<h1>We are away</h1>",
                finished_at=timezone.now(),
                duration=dt.timedelta(milliseconds=312),
                dns_ms=1.3,
                connect_ms=20.1,
                tls_ms=44.7,
                answer_ms=245.2,
                peer="203.0.113.7",
            )
    delivery_to(endpoint, later=True)
    return endpoint


@pytest.fixture
def narrow(browser: webdriver.Chrome) -> Iterator[None]:
    """A window as narrow as a telephone."""
    size = browser.get_window_size()
    browser.set_window_size(420, 900)
    yield
    browser.set_window_size(size["width"], size["height"])


def test_an_endpoint_that_is_held_back_is_disabled_enabled_and_resumed(
    site: str, browser: webdriver.Chrome, failing: WebhookEndpoint
):
    page = f"{site}/admin/notify/webhookendpoint/{failing.pk}/change/"
    browser.get(page)
    state = browser.find_element(By.CSS_SELECTOR, ".field-state .readonly")
    assert "5 failures in a row: HTTP 503" in state.text
    assert (
        "1, the oldest for" in browser.find_element(By.CLASS_NAME, "field-waiting").text
    )

    press(browser, "Disable")
    assert told(browser).startswith("Disabled: ")
    browser.get(page)
    press(browser, "Enable")
    assert told(browser).startswith("Enabled: ")
    failing.refresh_from_db()
    assert failing.enabled
    assert failing.breaker == WebhookEndpoint.Breaker.RECOVERING


def test_a_dead_delivery_is_looked_at_and_resent(
    site: str, browser: webdriver.Chrome, failing: WebhookEndpoint
):
    browser.get(
        f"{site}/admin/notify/webhookdelivery/?status=dead&endpoint={failing.pk}"
    )
    listed = browser.find_elements(By.CSS_SELECTOR, "#result_list tbody tr")
    assert len(listed) == 3
    listed[0].find_element(By.CSS_SELECTOR, "th a").click()

    sections = wait_until(
        lambda: browser.find_elements(By.CLASS_NAME, "delivery-section"),
        what="the delivery's page",
    )
    assert "out of service for the moment" in sections[0].text
    answer = browser.find_element(By.CSS_SELECTOR, ".delivery-section details pre")
    assert not answer.is_displayed()
    browser.find_element(By.CSS_SELECTOR, ".delivery-section summary").click()
    assert answer.text == "<h1>We are away</h1>"
    press(browser, "Resend")

    assert told(browser) == "1 resent"
    assert Job.objects.dead().count() == 2


def test_what_died_is_recovered_after_it_was_counted(
    site: str, browser: webdriver.Chrome, failing: WebhookEndpoint
):
    browser.get(f"{site}/admin/notify/webhookendpoint/{failing.pk}/change/")
    press(browser, "Recover…")
    wait_until(lambda: browser.find_elements(By.NAME, "since"), what="the question")
    press(browser, "Count them")
    assert WebhookRecovery.objects.count() == 0
    press(browser, "Resend 3")

    assert told(browser) == "3 are resent to chat."
    progress = browser.find_element(By.CSS_SELECTOR, ".field-progress .readonly")
    assert progress.text == "0 of 3"
    press(browser, "Pause")
    wait_until(
        lambda: WebhookRecovery.objects.get().state == "paused", what="it is paused"
    )


@pytest.mark.usefixtures("narrow")
def test_no_page_scrolls_sideways_on_a_narrow_screen(
    site: str, browser: webdriver.Chrome, failing: WebhookEndpoint
):
    delivery = Job.objects.dead()[0]
    endpoint = f"webhookendpoint/{failing.pk}"
    for path in (
        "webhookendpoint/",
        f"{endpoint}/change/",
        f"{endpoint}/recover/?since=24h&per_minute=60",
        "webhookdelivery/",
        f"webhookdelivery/{delivery.pk}/change/",
        "webhookrecovery/",
    ):
        browser.get(f"{site}/admin/notify/{path}")
        wider = browser.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wider <= 0, path
