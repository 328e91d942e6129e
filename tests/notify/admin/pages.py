"""The pages of endpoints, and who opens them."""

from __future__ import annotations

from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from notify.models import WebhookEndpoint
from tests.notify.factories import UserFactory


def client_with(*permissions: str) -> Client:
    user = UserFactory(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def page(verb: str, *args: object) -> str:
    return reverse(f"admin:notify_webhookendpoint_{verb}", args=args)


def change_page(endpoint: WebhookEndpoint, verb: str = "change") -> str:
    return page(verb, endpoint.pk)
