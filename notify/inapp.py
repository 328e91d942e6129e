"""The notifier that people read: one row for each recipient."""

from __future__ import annotations

from notify.event import Event
from notify.models import Notification


def send(event: Event) -> int:
    """Write the event into its recipients' inboxes; return how many."""
    return len(
        Notification.objects.bulk_create(
            Notification(
                user_id=user.pk,
                topic=event.topic,
                title=event.title,
                body=event.body,
                data=dict(event.data),
            )
            for user in event.recipients
        )
    )
