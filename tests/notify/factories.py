"""Rows for tests, each with what it needs."""

from __future__ import annotations

import datetime as dt
from typing import Any

import factory
from django.contrib.auth import get_user_model
from django.db.models.functions import Now

from jobs.models import Job
from notify.models import (
    Notification,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookRecovery,
)
from tests.jobs.factories import JobFactory

SECRET = "acw-test-secret-0123456789abcdef"
TOPIC = "test.happened"


class UserFactory(factory.django.DjangoModelFactory):  # type: ignore[misc] # factory is untyped
    class Meta:
        model = get_user_model()

    username = factory.Sequence(lambda n: f"user{n}")
    password = factory.django.Password(None)  # none: tests log in without


class AdminFactory(UserFactory):
    username = factory.Sequence(lambda n: f"admin{n}")
    is_staff = True
    is_superuser = True


class NotificationFactory(factory.django.DjangoModelFactory):  # type: ignore[misc] # factory is untyped
    class Meta:
        model = Notification

    user = factory.SubFactory(UserFactory)
    topic = TOPIC
    title = factory.Sequence(lambda n: f"Thing {n} happened")


class EndpointFactory(factory.django.DjangoModelFactory):  # type: ignore[misc] # factory is untyped
    class Meta:
        model = WebhookEndpoint

    name = factory.Sequence(lambda n: f"endpoint{n}")
    url = "https://hooks.example/T000/SECRET-TOKEN"
    topics = factory.LazyFunction(lambda: [TOPIC])

    @classmethod
    def _create(cls, model_class: Any, *args: Any, **kwargs: Any) -> WebhookEndpoint:
        secret = kwargs.pop("secret", SECRET)
        endpoint: WebhookEndpoint = model_class(*args, **kwargs)
        endpoint.set_secret(secret)
        endpoint.save()
        return endpoint


class AttemptFactory(factory.django.DjangoModelFactory):  # type: ignore[misc] # factory is untyped
    class Meta:
        model = WebhookAttempt

    job_id = factory.Faker("uuid4", cast_to=None)
    endpoint = factory.SubFactory(EndpointFactory)
    topic = TOPIC
    number = 1


class RecoveryFactory(factory.django.DjangoModelFactory):  # type: ignore[misc] # factory is untyped
    class Meta:
        model = WebhookRecovery

    endpoint = factory.SubFactory(EndpointFactory)
    since = Now() - dt.timedelta(hours=2)
    until = Now()
    per_minute = 60
    counted = 3
    requested_by = "alice"


def delivery_to(endpoint: WebhookEndpoint, **values: Any) -> WebhookDelivery:
    """A delivery as the queue keeps it; ``dead=True`` and the other states are those of its jobs."""
    body = values.pop("body", '{"title":"It happened"}')
    job: Job = JobFactory(
        **{
            "type": "webhook.deliver",
            "queue": "webhooks",
            "ref_id": str(endpoint.pk),
            "payload": {"endpoint_id": endpoint.pk, "topic": TOPIC, "body": body},
            "max_attempts": 6,
            **values,
        }
    )
    return WebhookDelivery.objects.get(pk=job.pk)
