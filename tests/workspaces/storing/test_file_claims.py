"""An upload whose transaction takes long, beside a sweep: each with a connection of its own."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from django.db import connection, transaction

from jobs.testing import PATIENCE
from tests.workspaces.factories import ConversationFactory
from tests.workspaces.storages import any_storage, make_old, stored
from workspaces import attachments
from workspaces.models import Attachment, Conversation
from workspaces.storing import file_claims
from workspaces.storing.sweep import sweep

__all__ = ["any_storage"]

pytestmark = [pytest.mark.django_db(transaction=True)]


def test_a_file_has_one_claimant_until_its_transaction_ends():
    def tried() -> tuple[bool, bool]:
        try:
            with transaction.atomic():
                return file_claims.try_claim("a"), file_claims.try_claim("b")
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as others:
        with transaction.atomic():
            file_claims.claim("a")
            assert others.submit(tried).result(PATIENCE) == (False, True)
        assert others.submit(tried).result(PATIENCE) == (True, True)


def test_an_upload_that_is_not_committed_yet_is_not_swept_however_old_its_file(
    any_storage: str,
):
    conversation = ConversationFactory()
    written, swept = Event(), Event()

    def upload(conversation: Conversation) -> Attachment:
        try:
            with transaction.atomic():
                attachment = attachments.attach(conversation, name="a", content=b"x")
                make_old(str(attachment.file.name), days=31)
                written.set()
                assert swept.wait(PATIENCE)
            return attachment
        finally:
            written.set()
            connection.close()

    with ThreadPoolExecutor(1) as others:
        uploading = others.submit(upload, conversation)
        assert written.wait(PATIENCE)
        try:
            assert sweep(dt.timedelta(days=30), stop=lambda: False).files == 0
        finally:
            swept.set()
        attachment = uploading.result(PATIENCE)
    assert stored() == {attachment.file.name}
    assert sweep(dt.timedelta(days=30), stop=lambda: False).files == 0
    with attachments.open_bytes(attachment) as content:
        assert content.read() == b"x"
