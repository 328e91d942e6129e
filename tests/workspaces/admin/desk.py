"""Who sits at the admin, and what they do there."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import Permission, User
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from workspaces.models import Attachment


def staff(client: Client, *permissions: str) -> Client:
    """A client logged in as staff with these permissions only."""
    user = User.objects.create_user("staff", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client.force_login(user)
    return client


def act(client: Client, page: str, action: str, rows: Iterable[models.Model]) -> str:
    """Do an action to the rows selected in the list ``page``; what is shown after."""
    chosen = [str(row.pk) for row in rows]
    response = client.post(
        reverse(f"{page}_changelist"),
        {"action": action, "_selected_action": chosen},
        follow=True,
    )
    assert response.status_code == 200
    return response.content.decode()


def press(client: Client, page: str, button: str, row: models.Model) -> str:
    """Press a button on the row's page; what is shown after."""
    url = reverse(f"{page}_{button}", args=[row.pk])
    response = client.post(url, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def shown(client: Client, page: str, row: models.Model | None = None) -> str:
    """The row's page, or the list."""
    if row is None:
        url = reverse(f"{page}_changelist")
    else:
        url = reverse(f"{page}_change", args=[row.pk])
    response = client.get(url)
    assert response.status_code == 200
    return response.content.decode()


def download_url(attachment: Attachment) -> str:
    """Where its bytes are had from."""
    return reverse("admin:workspaces_attachment_download", args=[attachment.pk])


def queries(client: Client, page: str) -> int:
    """How many queries the list ``page`` takes."""
    with CaptureQueriesContext(connection) as captured:
        shown(client, page)
    return len(captured)
