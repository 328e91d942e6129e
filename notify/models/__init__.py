"""The tables of what is told to people and receivers. What is done with them lives elsewhere.

Every time is the database's, so that no host's clock decides anything.
"""

from __future__ import annotations

from notify.models.attempt import WebhookAttempt
from notify.models.audit import AuditEntry
from notify.models.delivery import WebhookDelivery, WebhookRecovery
from notify.models.endpoint import WebhookEndpoint
from notify.models.notification import Notification

__all__ = [
    "AuditEntry",
    "Notification",
    "WebhookAttempt",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WebhookRecovery",
]
