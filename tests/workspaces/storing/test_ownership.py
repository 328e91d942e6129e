from __future__ import annotations

from unittest.mock import Mock

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages

from tests.workspaces.factories import ConversationFactory
from tests.workspaces.storages import any_storage, put, stored
from workspaces import attachments
from workspaces.storing.cleanup import clean_up
from workspaces.storing.ownership import MARK, refusal
from workspaces.storing.storage import ALIAS

__all__ = ["any_storage"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("any_storage")]


def test_a_storage_is_marked_once_and_known_again():
    kept = storages[ALIAS]
    assert refusal() == ""
    assert not kept.exists(MARK)  # it may be a disk that is not mounted
    put("ab/c")
    for _ in range(2):
        assert refusal() == ""
    assert kept.listdir("") == (["ab"], [MARK])


def test_another_databases_files_are_no_leftovers(caplog: pytest.LogCaptureFixture):
    attachments.attach(ConversationFactory(), name="a", content=b"x")
    storages[ALIAS].save(MARK, ContentFile(b"another"))
    other = put("ab/other", days=400)
    assert clean_up().files == 0
    assert other in stored()
    (record,) = (each for each in caplog.records if each.msg == "attachment.unswept")
    assert "mark of another database" in record.__dict__["reason"]

    storages[ALIAS].delete(MARK)
    assert clean_up().files == 1
    assert other not in stored()


def test_one_that_renames_keeps_no_mark(monkeypatch: pytest.MonkeyPatch):
    kept = storages[ALIAS]
    put("ab/c")
    save = kept.save
    monkeypatch.setattr(kept, "save", lambda name, content: save(f"{name}-1", content))
    assert refusal() == ""
    assert kept.listdir("")[1] == []
    monkeypatch.setattr(kept, "save", Mock(side_effect=PermissionError))
    assert "could not be written: PermissionError" in refusal()
