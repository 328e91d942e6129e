"""Rows for tests, each with what it needs; nothing of theirs is on the disk."""

from __future__ import annotations

import factory
from django.contrib.auth import get_user_model

from workspaces import paths
from workspaces.models import (
    Attachment,
    Conversation,
    LedgerEntry,
    Workspace,
    Worktree,
    WorktreeArchive,
)

HOST = "test-host"


class UserFactory(factory.django.DjangoModelFactory):  # type: ignore[misc] # factory is untyped
    class Meta:
        model = get_user_model()

    username = factory.Sequence(lambda n: f"user{n}")


class AdminFactory(UserFactory):
    username = factory.Sequence(lambda n: f"admin{n}")
    is_staff = True
    is_superuser = True


class WorkspaceFactory(factory.django.DjangoModelFactory):  # type: ignore[misc] # factory is untyped
    class Meta:
        model = Workspace

    name = factory.Sequence(lambda n: f"workspace{n}")
    url = "https://git.example/project.git"
    host = HOST
    path = factory.LazyAttribute(
        lambda row: str(paths.repository_path(paths.workspace_directory(row.name)))
    )
    default_branch = "main"


class WorktreeFactory(factory.django.DjangoModelFactory):  # type: ignore[misc] # factory is untyped
    class Meta:
        model = Worktree

    workspace = factory.SubFactory(WorkspaceFactory)
    branch = factory.Sequence(lambda n: f"branch{n}")
    path = factory.LazyAttribute(
        lambda row: str(
            paths.new_worktree_path(
                paths.workspace_directory(row.workspace.name), row.branch
            )
        )
    )


class ConversationFactory(factory.django.DjangoModelFactory):  # type: ignore[misc] # factory is untyped
    class Meta:
        model = Conversation

    title = factory.Sequence(lambda n: f"Conversation {n}")


class AttachmentFactory(factory.django.DjangoModelFactory):  # type: ignore[misc] # factory is untyped
    class Meta:
        model = Attachment

    conversation = factory.SubFactory(ConversationFactory)
    file = factory.Sequence(lambda n: f"00/{n:032x}")
    name = "notes.txt"
    size = 5
    content_type = "text/plain"
    host = HOST


class ArchiveFactory(factory.django.DjangoModelFactory):  # type: ignore[misc] # factory is untyped
    class Meta:
        model = WorktreeArchive

    workspace = factory.SubFactory(WorkspaceFactory)
    worktree_id = factory.Sequence(lambda n: 1_000_000 + n)
    branch = factory.Sequence(lambda n: f"acw/gone{n}")
    path = factory.LazyAttribute(lambda row: f"/data/worktrees/{row.worktree_id}")
    state = WorktreeArchive.State.VERIFIED
    reason = WorktreeArchive.Reason.PRUNED
    actor = "system"


class LedgerEntryFactory(factory.django.DjangoModelFactory):  # type: ignore[misc] # factory is untyped
    class Meta:
        model = LedgerEntry

    action = LedgerEntry.Action.PRUNED
    actor = "system"
    host = HOST
    workspace = factory.Sequence(lambda n: f"workspace{n}")
    worktree_id = factory.Sequence(lambda n: 1_000_000 + n)
    branch = factory.Sequence(lambda n: f"acw/gone{n}")
