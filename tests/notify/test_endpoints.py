from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.apps import apps
from django.apps.registry import Apps
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db.models.signals import post_migrate
from pytest_django import Settings

from notify import endpoints
from notify.exceptions import (
    InvalidHeader,
    InvalidSecret,
    InvalidTopic,
    InvalidUrl,
    UnknownTopic,
)
from notify.models import AuditEntry, WebhookEndpoint
from tests.notify.factories import SECRET, TOPIC, EndpointFactory

pytestmark = pytest.mark.django_db
URL = "https://hooks.example/T000/SECRET-TOKEN"


def add(
    *,
    name: str = "chat",
    url: str = URL,
    topic_names: Sequence[str] = (TOPIC,),
    secret: str = SECRET,
    **more: Any,
) -> WebhookEndpoint:
    return endpoints.add(
        name, url, topic_names=topic_names, secret=secret, actor="alice", **more
    )


def test_an_endpoint_is_made_and_audited():
    endpoint = add(topic_names=[TOPIC, TOPIC], secret=f"{SECRET}\n")

    assert endpoint.topics == [TOPIC]
    assert WebhookEndpoint.objects.get().signing_secret() == SECRET
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action) == ("alice", "webhook.endpoint_added")
    assert entry.target == "webhook:chat"
    assert "SECRET-TOKEN" not in repr(entry.data)


def test_an_endpoint_is_made_with_all_that_it_may_have():
    endpoint = endpoints.add(
        "chat",
        URL,
        topic_names=["worktree.*"],
        secret=SECRET,
        actor="alice",
        headers={"Authorization": "Bearer SECRET-TOKEN"},
        timeout=dt.timedelta(seconds=20),
        max_in_flight=1,
        checkup_allowed=True,
    )

    endpoint.refresh_from_db()
    assert endpoint.topics == ["worktree.*"]
    assert endpoint.own_headers() == {"Authorization": "Bearer SECRET-TOKEN"}
    assert endpoint.timeout == dt.timedelta(seconds=20)
    assert (endpoint.max_in_flight, endpoint.checkup_allowed) == (1, True)
    data = AuditEntry.objects.get().data
    assert data["headers"] == ["Authorization"]
    assert "SECRET-TOKEN" not in repr(data)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"url": "ftp://host"}, InvalidUrl),
        ({"secret": "short"}, InvalidSecret),
        ({"topic_names": ["test.hapened"]}, UnknownTopic),
        ({"topic_names": ["webhook.dead_letter"]}, InvalidTopic),
        ({"topic_names": ["worktre.*"]}, UnknownTopic),
        ({"headers": {"Host": "x"}}, InvalidHeader),
        ({"timeout": dt.timedelta(hours=1)}, ValidationError),
        ({"max_in_flight": 0}, ValidationError),
        ({"name": ""}, ValidationError),
        ({"name": "x" * 101}, ValidationError),
    ],
    ids=lambda value: str(value),
)
def test_what_breaks_a_rule_makes_no_endpoint(values, error):
    with pytest.raises(error):
        add(**values)

    assert not WebhookEndpoint.objects.exists()


def test_a_name_is_given_once():
    add()

    with pytest.raises(ValidationError, match="already exists"):
        add()


@pytest.fixture
def first_configured(settings: Settings) -> Settings:
    settings.NOTIFY_WEBHOOK_URL = URL
    settings.NOTIFY_WEBHOOK_SECRET = f"{SECRET}\n"
    settings.NOTIFY_WEBHOOK_TOPICS = [TOPIC]
    return settings


def test_migrate_makes_the_first_endpoint_and_never_touches_one(
    first_configured: Settings,
):
    call_command("migrate", verbosity=0)

    endpoint = WebhookEndpoint.objects.get()
    assert (endpoint.name, endpoint.url, endpoint.topics) == ("default", URL, [TOPIC])
    assert endpoint.enabled
    assert endpoint.signing_secret() == SECRET
    assert AuditEntry.objects.get().actor == "system"

    first_configured.NOTIFY_WEBHOOK_URL = "https://other.example/"
    call_command("migrate", verbosity=0)
    assert WebhookEndpoint.objects.get().url == URL


def test_where_there_is_an_endpoint_none_is_made(first_configured: Settings):
    EndpointFactory(name="chat")

    endpoints.create_first()

    assert WebhookEndpoint.objects.get().name == "chat"


def test_without_a_url_none_is_made(settings: Settings):
    settings.NOTIFY_WEBHOOK_URL = ""

    endpoints.create_first()

    assert not WebhookEndpoint.objects.exists()


def test_another_database_gets_none(first_configured: Settings):
    endpoints.create_first(using="replica")

    assert not WebhookEndpoint.objects.exists()


def test_before_this_apps_tables_are_there_nothing_is_done(first_configured: Settings):
    """Django sends its signal after a migration backwards, too."""
    endpoints.create_first(apps=Apps())

    assert not WebhookEndpoint.objects.exists()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("NOTIFY_WEBHOOK_URL", "http://me:pw@host/", "user name or password"),
        ("NOTIFY_WEBHOOK_SECRET", "", "24 to 64 characters"),
        ("NOTIFY_WEBHOOK_TOPICS", ["test.hapened"], "did you mean 'test.happened'"),
        ("NOTIFY_WEBHOOK_TOPICS", ["webhook.test"], "never sent as one"),
        ("ACW_ENCRYPTION_KEYS", [], "set it to a Fernet key"),
    ],
    ids=lambda value: str(value),
)
def test_a_bad_value_is_one_line_that_names_the_variable(
    first_configured: Settings, name: str, value, message: str
):
    setattr(first_configured, name, value)

    with pytest.raises(CommandError, match=f"^{name}: .*{message}") as refused:
        endpoints.create_first()

    assert "\n" not in str(refused.value)
    assert not WebhookEndpoint.objects.exists()


def test_the_first_endpoint_is_made_by_this_apps_signal_alone():
    config = apps.get_app_config("notify")

    receivers = list(post_migrate._live_receivers(config)[0])

    assert endpoints.create_first in receivers
    other = apps.get_app_config("auth")
    assert endpoints.create_first not in post_migrate._live_receivers(other)[0]


def test_a_key_that_is_renewed_reads_the_first_endpoint(first_configured: Settings):
    endpoints.create_first()
    new = Fernet.generate_key().decode()
    first_configured.ACW_ENCRYPTION_KEYS = [new, *first_configured.ACW_ENCRYPTION_KEYS]

    assert WebhookEndpoint.objects.get().signing_secret() == SECRET
