from __future__ import annotations

import pytest

from notify.forms import WebhookEndpointForm
from notify.models import WebhookEndpoint
from tests.notify.factories import SECRET, TOPIC, EndpointFactory

pytestmark = pytest.mark.django_db
NEW_SECRET = "another-secret-0123456789abcdef"


def form(instance: WebhookEndpoint | None = None, **values) -> WebhookEndpointForm:
    data = {
        "name": "chat",
        "url": "https://hooks.example/x",
        "enabled": "on",
        "topics": [TOPIC],
        "secret": "",
    }
    return WebhookEndpointForm(data | values, instance=instance)


def test_an_endpoint_is_made_with_its_secret_encrypted():
    endpoint = form(secret=f" {SECRET}\n").save()

    endpoint.refresh_from_db()
    assert endpoint.signing_secret() == SECRET
    assert endpoint.topics == [TOPIC]
    assert endpoint.enabled


def test_a_new_endpoint_needs_a_secret():
    assert "secret" in form().errors


def test_an_empty_secret_keeps_the_one_that_is_set():
    endpoint = form(EndpointFactory(secret=SECRET)).save()

    endpoint.refresh_from_db()
    assert endpoint.signing_secret() == SECRET


def test_a_secret_that_is_given_takes_the_place_of_the_old_one():
    endpoint = form(EndpointFactory(secret=SECRET), secret=NEW_SECRET).save()

    endpoint.refresh_from_db()
    assert endpoint.signing_secret() == NEW_SECRET


@pytest.mark.parametrize("secret", ["short", "x" * 20 + " " + "x" * 20])
def test_a_secret_that_breaks_the_rules_is_refused(secret: str):
    assert "secret" in form(EndpointFactory(), secret=secret).errors


def test_whether_a_secret_is_set_shows_and_what_it_is_does_not():
    shown = WebhookEndpointForm(instance=EndpointFactory(secret=SECRET)).as_p()

    assert "A secret is set." in shown
    assert SECRET not in shown
    assert "Not set." in WebhookEndpointForm().as_p()
    assert SECRET not in form(secret=SECRET, name="").as_p()


def test_the_topics_that_may_go_out_are_offered():
    shown = WebhookEndpointForm().as_p()

    assert f"Thing happened ({TOPIC})" in shown
    assert "webhook.dead_letter" not in shown


def test_a_topic_that_never_goes_out_cannot_be_chosen():
    assert "topics" in form(secret=SECRET, topics=["webhook.dead_letter"]).errors


def test_a_topic_whose_app_is_away_is_kept():
    endpoint = EndpointFactory(topics=["gone.thing"])

    assert (
        "gone.thing (not defined any more)"
        in WebhookEndpointForm(instance=endpoint).as_p()
    )
    assert form(endpoint, topics=["gone.thing"]).save().topics == ["gone.thing"]


def test_a_url_that_breaks_the_rules_is_refused():
    errors = form(secret=SECRET, url="https://me:pw@host/").errors

    assert "user name or password" in errors["url"][0]
