"""Conversations and their attachments: fields and constraints. What is done with them lives elsewhere."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from workspaces.models.workspace import HOST_MAX_LENGTH, Worktree
from workspaces.querysets import AttachmentQuerySet, ConversationQuerySet
from workspaces.storing.storage import attachment_storage, new_file_name


class Conversation(models.Model):
    """An agent's conversation; deleting one only sets ``deleted_at``."""

    title = models.CharField(max_length=200)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="conversations",
    )
    worktree = models.ForeignKey(
        Worktree,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="conversations",
    )
    created_at = models.DateTimeField(db_default=Now())
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[ConversationQuerySet] = ConversationQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        db_table = "conversations"
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.title


class Attachment(models.Model):
    """A file that belongs to a conversation; without one it is an orphan, since ``orphaned_at``.

    Its bytes lie on the disk of ``host``, or, where that is "", in a storage that every host reaches. ``missing_at`` says since
    when its bytes are known to be gone.
    """

    conversation = models.ForeignKey(
        Conversation,
        null=True,
        blank=True,
        # The clock of an orphan has to start: workspaces.attachments.detach() does both.
        on_delete=models.PROTECT,
        related_name="attachments",
    )
    file = models.FileField(storage=attachment_storage, upload_to=new_file_name)
    name = models.CharField(max_length=255)
    size = models.BigIntegerField()
    content_type = models.CharField(max_length=255)
    host = models.CharField(max_length=HOST_MAX_LENGTH, blank=True, db_default="")
    digest = models.CharField(max_length=64, blank=True, db_default="")
    created_at = models.DateTimeField(db_default=Now())
    orphaned_at = models.DateTimeField(null=True, blank=True)
    missing_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[AttachmentQuerySet] = AttachmentQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        db_table = "attachments"
        ordering = ["-id"]
        indexes = [
            # The sweep asks for each file whether it has a row, and for a directory's rows.
            models.Index(
                fields=["file"],
                name="attachments_file",
                opclasses=["varchar_pattern_ops"],
            ),
            models.Index(
                fields=["orphaned_at"],
                name="attachments_orphaned",
                condition=models.Q(conversation__isnull=True),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                name="attachments_orphaned_at_without_conversation",
                condition=models.Q(conversation__isnull=True, orphaned_at__isnull=False)
                | models.Q(conversation__isnull=False, orphaned_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return self.name
