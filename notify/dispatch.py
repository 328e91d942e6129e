"""Telling an event to everyone whom it concerns: each notifier, in the caller's transaction.

::

    dispatch(
        Event(
            topic="workspace.sync_failed",
            recipients=owner_or_admins(workspace.owner),
            title=f"{workspace.name} cannot be fetched",
            body=error,
            data={"workspace_id": workspace.pk},
        )
    )
"""

from __future__ import annotations

import logging

from django.db import transaction

from notify import inapp, webhooks
from notify.event import Event, Group
from notify.events import LogEvent

__all__ = ["Event", "Group", "dispatch"]

log = logging.getLogger(__name__)


def dispatch(event: Event) -> None:
    """Tell ``event``: rows in the inboxes of its recipients, a job for each endpoint that has its topic.

    Both are written in the transaction that is open, and vanish with it. Raises
    :class:`~notify.exceptions.UnknownTopic` and :class:`~notify.exceptions.InvalidEvent`.
    """
    event = event.checked()
    with transaction.atomic():
        notifications = inapp.send(event)
        deliveries = webhooks.send(event)
    log.info(
        LogEvent.DISPATCHED,
        extra={
            "topic": event.topic,
            "notifications": notifications,
            "webhooks": deliveries,
        },
    )
