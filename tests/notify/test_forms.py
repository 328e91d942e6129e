from __future__ import annotations

import datetime as dt

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

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
        "headers": "",
        "timeout": "",
        "max_in_flight": "4",
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


def test_patterns_are_offered_beside_the_topics_that_they_stand_for():
    shown = WebhookEndpointForm().as_p()

    assert "Everything that may go out (*)" in shown
    assert "Everything about worktree (worktree.*)" in shown
    assert "webhook.*" not in shown
    assert form(secret=SECRET, topics=["test.*"]).save().topics == ["test.*"]


def test_headers_are_kept_encrypted_and_only_their_names_shown_again():
    endpoint = form(secret=SECRET, headers="Authorization: Bearer abc\r\nX-T: 7").save()

    endpoint.refresh_from_db()
    assert endpoint.own_headers() == {"Authorization": "Bearer abc", "X-T": "7"}
    shown = WebhookEndpointForm(instance=endpoint).as_p()
    assert "Authorization: (unchanged)" in shown
    assert "Bearer abc" not in shown
    assert "Bearer abc" not in endpoint.encrypted_headers


@pytest.mark.parametrize(
    ("text", "expected", "changed"),
    [
        (
            "Authorization: (unchanged)\r\nX-T: (unchanged)",
            {"Authorization": "Bearer abc", "X-T": "7"},
            False,
        ),
        (
            "Authorization: (unchanged)\r\nX-T: 8\r\nX-New: 9",
            {"Authorization": "Bearer abc", "X-T": "8", "X-New": "9"},
            True,
        ),
        ("Authorization: (unchanged)", {"Authorization": "Bearer abc"}, True),
        ("", {}, True),
    ],
    ids=["left untouched", "one changed and one added", "one taken out", "none left"],
)
def test_a_header_is_kept_changed_added_or_removed_by_its_line(
    text: str, expected: dict[str, str], changed: bool
):
    endpoint = EndpointFactory()
    endpoint.set_headers({"Authorization": "Bearer abc", "X-T": "7"})
    endpoint.save()

    edited = form(endpoint, headers=text)

    edited.save()
    endpoint.refresh_from_db()
    assert endpoint.own_headers() == expected
    assert ("headers" in edited.changed_data) is changed


@pytest.mark.parametrize(
    ("url", "goes"),
    [
        ("https://hooks.example/other/path", True),
        ("https://hooks.example:8443/", False),
        ("http://hooks.example/", False),
        ("https://attacker.example/", False),
    ],
)
def test_a_header_that_is_kept_goes_to_no_other_host(url: str, goes: bool):
    """Or whoever may change an endpoint could have its credentials sent to a machine of their own."""
    endpoint = EndpointFactory(url="https://hooks.example/path")
    endpoint.set_headers({"Authorization": "Bearer abc"})
    endpoint.save()

    kept = form(endpoint, url=url, headers="Authorization: (unchanged)")
    assert kept.is_valid() == goes
    if not goes:
        assert "'Authorization' has to be typed anew" in kept.errors["headers"][0]
    endpoint.refresh_from_db()
    assert form(endpoint, url=url, headers="Authorization: Bearer new").is_valid()
    endpoint.refresh_from_db()
    assert form(endpoint, url=url, headers="").is_valid()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Authorization", "line 1 is not of the form"),
        ("X-ACW-Signature: x", "is reserved"),
        ("X-A: é", "not printable ASCII"),
        ("X-A: 1\u2028X-B: 2", "not printable ASCII"),
        ("X-A: 1\x0bX-B: 2", "not printable ASCII"),
        ("X-New: (unchanged)", "'X-New' has no value to keep"),
    ],
    ids=ascii,
)
def test_headers_that_break_a_rule_are_refused(text: str, message: str):
    assert message in form(EndpointFactory(), headers=text).errors["headers"][0]


def test_headers_that_cannot_be_read_stay_until_others_are_given(settings: Settings):
    endpoint = EndpointFactory()
    endpoint.set_headers({"X-T": "7"})
    endpoint.save()
    [key] = settings.ACW_ENCRYPTION_KEYS
    settings.ACW_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]

    assert "cannot be read" in WebhookEndpointForm(instance=endpoint).as_p()
    form(endpoint).save()

    settings.ACW_ENCRYPTION_KEYS = [key]
    endpoint.refresh_from_db()
    assert endpoint.own_headers() == {"X-T": "7"}
    settings.ACW_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    form(endpoint, headers="X-T: 8").save()
    assert endpoint.own_headers() == {"X-T": "8"}


def test_a_timeout_of_its_own_is_written_with_its_unit_and_shown_so():
    endpoint = form(secret=SECRET, timeout="1.5s").save()

    endpoint.refresh_from_db()
    assert endpoint.timeout == dt.timedelta(seconds=1.5)
    assert 'value="1.5s"' in WebhookEndpointForm(instance=endpoint).as_p()
    assert form(endpoint, timeout="").save().timeout is None


@pytest.mark.parametrize(
    ("timeout", "message"),
    [
        ("15", "it has no unit"),
        ("900ms", "from 1s to 60s"),
        ("61s", "from 1s to 60s"),
        ("0", "from 1s to 60s"),
    ],
)
def test_a_timeout_that_breaks_a_rule_is_refused(timeout: str, message: str):
    [error] = form(secret=SECRET, timeout=timeout).errors["timeout"]

    assert message in error


def test_the_limit_in_flight_stays_where_it_is_left_empty():
    endpoint = EndpointFactory(max_in_flight=7)

    assert form(endpoint, max_in_flight="").save().max_in_flight == 7
    assert form(secret=SECRET, name="b", max_in_flight="").save().max_in_flight == 4
    assert "max_in_flight" in form(endpoint, max_in_flight="0").errors
    assert "max_in_flight" in form(endpoint, max_in_flight="101").errors


def test_whether_it_may_be_checked_up_is_asked():
    assert not form(secret=SECRET).save().checkup_allowed
    assert form(secret=SECRET, name="b", checkup_allowed="on").save().checkup_allowed
