"""Who looks at tasks in the admin, with just the permissions that a test gives them, and what the pages tell them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from workspaces.tasks.models import Agent, Task

LIST = "/admin/tasks/task/"
AGENTS = "/admin/tasks/agent/"
HOSTILE = '<script>alert("x")</script>'


def client_with(*permissions: str, username: str = "dora") -> Client:
    """Logged in as one of the staff who has these permissions and no others."""
    user = User.objects.create_user(username, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def operator() -> Client:
    """Whoever may look at tasks and act in their publishers' place."""
    return client_with("view_task", "operate_task", username="olga")


def page(row: Task | Agent, what: str = "change") -> str:
    return reverse(f"admin:tasks_{row._meta.model_name}_{what}", args=[row.pk])


def html(response: Any) -> str:
    assert response.status_code == 200
    return str(response.content.decode())


def messages(response: Any) -> list[str]:
    """What the page tells its user, each with its level."""
    return [f"{said.level_tag}: {said}" for said in response.context["messages"]]
