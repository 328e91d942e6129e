"""The notifier that people read: one row for each recipient, and one for a whole group of events."""

from __future__ import annotations

import json
from typing import Any

from django.db import connection, transaction

from notify.event import Event, Group
from notify.models import Notification
from notify.models.notification import TITLE_MAX_LENGTH

_LOCK = "SELECT pg_advisory_xact_lock(hashtext('notify.group'))"

# A row that somebody else has locked, as its reader does who marks it as read, is left to them, and a new one written:
# so nothing is waited for here but the lock above.
_GROW_OR_ADD = """
WITH found AS (
    SELECT id FROM notifications AS newest
    WHERE group_key = %(key)s AND created_at > statement_timestamp() - %(window)s AND user_id = ANY(%(users)s)
        AND NOT EXISTS (
            SELECT FROM notifications AS later
            WHERE later.group_key = newest.group_key AND later.user_id = newest.user_id AND later.id > newest.id
        )
    FOR UPDATE SKIP LOCKED
), grown AS (
    UPDATE notifications
    SET count = count + 1, title = left((count + 1) || ' ' || %(titles)s, %(longest)s),
        body = %(body)s, data = %(grown_data)s, read_at = NULL
    FROM found WHERE notifications.id = found.id
    RETURNING user_id
)
INSERT INTO notifications (user_id, topic, title, body, data, group_key)
SELECT user_id, %(topic)s, %(title)s, %(body)s, %(data)s, %(key)s
FROM unnest(%(users)s) AS user_id WHERE user_id NOT IN (SELECT grown.user_id FROM grown)
"""


def send(event: Event) -> int:
    """Write the event into its recipients' inboxes; return how many."""
    if event.group is not None:
        return _send_grouped(event, event.group)
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


def _send_grouped(event: Event, group: Group) -> int:
    """Each recipient's notification of the group grows by one, and is unread again; who has none gets it.

    One lock for all groups, until the transaction ends: two events at once make one row, and transactions that
    tell of several groups in different orders do not lock each other out.
    """
    users = [user.pk for user in event.recipients]
    if not users:
        return 0
    parameters: dict[str, Any] = {
        "key": group.key,
        "window": group.window,
        "users": users,
        "topic": event.topic,
        "title": event.title,
        "titles": group.title,
        "longest": TITLE_MAX_LENGTH,
        "body": event.body,
        "data": json.dumps(event.data),
        "grown_data": json.dumps({**event.data, "url": group.url}),
    }
    with transaction.atomic(), connection.cursor() as cursor:
        # By itself: a statement sees what was there when it began, and not what was written while it waited.
        cursor.execute(_LOCK)
        cursor.execute(_GROW_OR_ADD, parameters)
    return len(users)
