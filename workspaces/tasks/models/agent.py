"""Who acts on tasks: users, and service accounts with a name of their own."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

NAME_MAX_LENGTH = 150
SERVICE = "service:"
"""Begins the name by which a service account is addressed."""


class Agent(models.Model):
    """A user, or a service account: a named one without a login. Exactly one of the two.

    A user's row is made when they first act; what concerns a service account is told to its ``owner``, or to every
    admin where it has none.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        # Their tasks, which are protected, keep a user from being deleted.
        on_delete=models.CASCADE,
        related_name="agent",
    )
    name = models.CharField(
        max_length=NAME_MAX_LENGTH, null=True, blank=True, unique=True
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="service_accounts",
        help_text="Is told what concerns the service account; where there is none, every admin is.",
    )
    enabled = models.BooleanField(
        db_default=True, default=True, help_text="Without it, it can do nothing more."
    )
    created_at = models.DateTimeField(db_default=Now())

    objects: ClassVar[models.Manager[Agent]] = models.Manager()

    class Meta:
        db_table = "task_agents"
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                name="task_agents_user_or_name",
                condition=models.Q(user__isnull=True, name__isnull=False)
                | models.Q(user__isnull=False, name__isnull=True, owner__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return (
            self.user.get_username()
            if self.user is not None
            else f"{SERVICE}{self.name}"
        )

    @property
    def may_act(self) -> bool:
        """Whether it is enabled, and its user, where it is one, may log in."""
        return self.enabled and (self.user is None or self.user.is_active)
