from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from tests.workspaces.conftest import Told
from tests.workspaces.factories import ConversationFactory
from tests.workspaces.storages import any_storage, lose, put
from workspaces import attachments
from workspaces.models import Attachment
from workspaces.storing import missing
from workspaces.storing.sweep import Swept, sweep

__all__ = ["any_storage"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("any_storage")]

NOTHING = Swept(files=0, missing=0)


@pytest.fixture
def attachment() -> Attachment:
    return attachments.attach(ConversationFactory(), name="a", content=b"x")


def swept() -> Swept:
    return sweep(dt.timedelta(days=30), stop=lambda: False)


def test_rows_whose_bytes_are_gone_are_marked_and_told_once(
    attachment: Attachment,
    told: Told,
    caplog: pytest.LogCaptureFixture,
    admin_user: Any,
):
    lose(attachment)
    assert swept() == Swept(files=0, missing=1)
    attachment.refresh_from_db()
    since = attachment.missing_at
    assert since is not None
    (note,) = told("attachment.missing")
    assert note.title == "1 attachment has lost its bytes"
    assert f"{attachment.pk}: a" in note.body
    assert swept() == NOTHING
    attachment.refresh_from_db()
    assert attachment.missing_at == since
    assert len(told("attachment.missing")) == 1
    assert caplog.messages.count("attachment.missing") == 1


def test_the_mark_goes_when_they_are_back(attachment: Attachment):
    name = str(attachment.file.name)
    lose(attachment)
    swept()
    put(name)
    assert swept() == NOTHING
    attachment.refresh_from_db()
    assert attachment.missing_at is None


def test_many_are_told_as_one(told: Told, admin_user: Any):
    for _ in range(25):
        lose(attachments.attach(ConversationFactory(), name="a", content=b"x"))
    assert swept().missing == 25
    (note,) = told("attachment.missing")
    assert note.title == "25 attachments have lost their bytes"
    assert "and 5 more" in note.body


def test_a_disk_that_is_not_there_is_told_once_however_many_it_had(
    told: Told, admin_user: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(missing, "_BATCH", 2)
    for _ in range(5):
        lose(attachments.attach(ConversationFactory(), name="a", content=b"x"))
    assert swept().missing == 5
    (note,) = told("attachment.missing")
    assert note.title == "5 attachments have lost their bytes"
    assert "mounted" in note.body
