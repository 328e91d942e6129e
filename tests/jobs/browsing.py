"""Clients of the admin with just the permissions that a test gives them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client

USERNAME = "dora"


def client_with(*permissions: str, **options: Any) -> Client:
    """Logged in as ``dora`` of the staff, who has these permissions of the app ``jobs`` and no others."""
    user = User.objects.create_user(USERNAME, is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(
            content_type__app_label="jobs", codename__in=permissions
        )
    )
    client = Client(**options)
    client.force_login(user)
    return client


def messages(response: Any) -> list[str]:
    """What the page tells its user."""
    return [str(message) for message in response.context["messages"]]
