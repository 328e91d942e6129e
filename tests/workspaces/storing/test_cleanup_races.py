"""A cleanup beside somebody who undeletes, and a cleanup, an upload or a sweep that is killed: with real connections and processes."""

from __future__ import annotations

import datetime as dt
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from jobs.testing import PATIENCE
from tests.workspaces import programs
from tests.workspaces.factories import ConversationFactory
from tests.workspaces.storages import any_storage, make_old, stored
from workspaces import attachments
from workspaces.models import Attachment, Conversation
from workspaces.storing.cleanup import clean_up
from workspaces.storing.storage import attachment_storage

__all__ = ["any_storage"]

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[3]


def expired() -> Attachment:
    """An attachment of a conversation that was deleted longer ago than the retention."""
    conversation = ConversationFactory()
    attachment = attachments.attach(conversation, name="a", content=b"x")
    Conversation.objects.update(deleted_at=Now() - dt.timedelta(days=31))
    return attachment


def beside(act: Callable[[], Any]) -> Callable[[], Any]:
    """To be run in another thread, with a connection that ends with it."""

    def run() -> Any:
        try:
            return act()
        finally:
            connection.close()

    return run


def test_who_undeletes_first_keeps_the_attachments(any_storage: str):
    attachment = expired()
    with ThreadPoolExecutor(1) as others, transaction.atomic():
        Conversation.objects.all().undelete()
        # The cleanup does not wait for whoever has the conversation.
        assert others.submit(beside(clean_up)).result(PATIENCE).attachments == 0
    assert clean_up().attachments == 0
    with attachments.open_bytes(attachment) as content:
        assert content.read() == b"x"


def test_who_undeletes_during_a_cleanup_gets_neither_row_nor_bytes(
    any_storage: str, monkeypatch: pytest.MonkeyPatch
):
    expired()
    undeleting = Event()
    plain = Attachment.objects.all()

    def undelete() -> int:
        undeleting.set()
        return Conversation.objects.all().undelete()

    with ThreadPoolExecutor(1) as others:
        waiting = []
        real = Attachment.objects.filter

        def slowly(*args: Any, **options: Any) -> Any:
            # The rows are locked: whoever undeletes now waits for the end of it.
            waiting.append(others.submit(beside(undelete)))
            assert undeleting.wait(PATIENCE)
            return real(*args, **options)

        with monkeypatch.context() as slow:
            slow.setattr(Attachment.objects, "filter", slowly)
            assert clean_up().attachments == 1
        assert waiting[0].result(PATIENCE) == 1
    assert Conversation.objects.get().deleted_at is None
    assert not plain.all().exists()
    assert stored() == set()


KILLS = (
    "attach: half its bytes",
    "attach: before its row",
    "attach: before its commit",
    "clean_up: before its commit",
    "clean_up: before its bytes",
    "sweep: before its bytes",
)


def test_whatever_is_killed_no_row_is_without_bytes_and_a_sweep_finds_the_rest(
    data_dir: Path,
):
    conversation = ConversationFactory()
    attachments.attach(conversation, name="kept", content=b"x")
    for _ in range(2):
        attachments.detach(attachments.attach(conversation, name="old", content=b"x"))
    Attachment.objects.filter(conversation=None).update(
        orphaned_at=Now() - dt.timedelta(days=31)
    )
    killed = programs.run("dying", [str(conversation.pk), *KILLS], data_dir)
    assert killed.split() == [str(-signal.SIGKILL)] * len(KILLS)

    rows = set(Attachment.objects.values_list("file", flat=True))
    assert rows <= stored()
    # Of the two that were old one is gone from the table: its cleanup was killed after the commit.
    assert Attachment.objects.filter(name="kept").count() == 1
    left = stored() - rows
    assert len(left) >= 3
    for name in left:
        make_old(name, days=31)
    removed = clean_up()
    assert removed.files == len(left)
    assert set(Attachment.objects.values_list("file", flat=True)) == stored()
    assert attachment_storage().exists(str(Attachment.objects.get().file.name))
