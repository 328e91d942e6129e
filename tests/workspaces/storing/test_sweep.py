from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pytest
from django.core.files.storage import storages
from django.db import connection

from tests.workspaces.factories import AttachmentFactory, ConversationFactory
from tests.workspaces.storages import any_storage, lose, make_old, put, stored
from workspaces import attachments
from workspaces.models import Attachment
from workspaces.storing.storage import ALIAS
from workspaces.storing.sweep import Swept, sweep

__all__ = ["any_storage"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("any_storage")]

NOTHING = Swept(files=0, missing=0)


@pytest.fixture
def attachment() -> Attachment:
    return attachments.attach(ConversationFactory(), name="a", content=b"x")


def swept(**retention: float) -> Swept:
    length = dt.timedelta(**retention) if retention else dt.timedelta(days=30)
    return sweep(length, stop=lambda: False)


def test_files_without_a_row_go_when_they_are_old(attachment: Attachment):
    make_old(str(attachment.file.name), days=31)
    for name in ("ab/old", "old", "ab/cd/old"):
        put(name, days=31)
    put("ab/new", days=29)
    assert swept() == Swept(files=3, missing=0)
    assert stored() == {attachment.file.name, "ab/new"}


def test_files_of_another_hosts_rows_stay():
    row = AttachmentFactory(host="elsewhere")
    put(str(row.file.name), days=4000)
    assert swept() == NOTHING
    assert stored() == {row.file.name}


def test_a_file_whose_upload_may_have_just_begun_stays_however_short_the_retention():
    AttachmentFactory(host="elsewhere")
    put("ab/upload", minutes=59)
    assert swept(seconds=0).files == 0
    assert stored() == {"ab/upload"}


def test_a_database_that_never_had_an_attachment_deletes_nothing(
    caplog: pytest.LogCaptureFixture,
):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE attachments ALTER COLUMN id RESTART")
    put("ab/of-another-database", days=4000)
    assert swept() == NOTHING
    assert "attachment.unswept" in caplog.messages
    assert stored() == {"ab/of-another-database"}


def test_links_are_neither_followed_nor_removed(
    data_dir: Path, tmp_path: Path, any_storage: str
):
    if any_storage != "files":
        return
    AttachmentFactory(host="elsewhere")
    outside = tmp_path / "outside" / "file"
    outside.parent.mkdir()
    outside.touch()
    os.utime(outside, (1, 1))
    top = data_dir / "attachments"
    top.mkdir(parents=True)
    (top / "directory").symlink_to(outside.parent)
    (top / "file").symlink_to(outside)
    os.utime(top / "file", (1, 1), follow_symlinks=False)
    assert swept() == NOTHING
    assert outside.exists()
    assert (top / "file").is_symlink()


def test_a_row_that_was_stored_after_the_listing_is_not_marked(
    attachment: Attachment, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(storages[ALIAS], "listdir", lambda path: ([], []))
    assert swept() == NOTHING


def test_a_row_whose_name_leads_out_of_the_storage_is_marked_and_nothing_touched(
    tmp_path: Path, any_storage: str
):
    (tmp_path / "victim").touch()
    row = AttachmentFactory(
        file="../../victim", host="test-host" if any_storage == "files" else ""
    )
    assert swept().missing == 1
    row.refresh_from_db()
    assert row.missing_at is not None
    assert (tmp_path / "victim").exists()


@pytest.mark.parametrize("lacks", ["listdir", "get_modified_time"])
def test_a_storage_that_lacks_something_is_swept_as_far_as_it_can_be_and_it_is_said(
    lacks: str,
    attachment: Attachment,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    put("ab/old", days=31)
    lost = attachments.attach(ConversationFactory(), name="b", content=b"x")
    lose(lost)

    def refuse(name: str) -> None:
        raise NotImplementedError

    monkeypatch.setattr(storages[ALIAS], lacks, refuse)
    assert swept() == Swept(files=0, missing=1)
    assert "attachment.unswept" in caplog.messages
    assert set(
        Attachment.objects.filter(missing_at__isnull=True).values_list("pk", flat=True)
    ) == {attachment.pk}


def test_nothing_is_begun_once_the_worker_stops(attachment: Attachment):
    lose(attachment)
    put("ab/old", days=31)
    assert sweep(dt.timedelta(0), stop=lambda: True) == NOTHING


def test_a_directory_is_compared_by_an_index(attachment: Attachment):
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN SELECT id FROM attachments WHERE file LIKE 'ab/%'")
        plan = " ".join(row[0] for row in cursor.fetchall())
    assert "attachments_file" in plan
    assert "Index Cond" in plan


def test_a_file_whose_name_is_no_text_stays_and_does_not_keep_the_rest(
    attachment: Attachment, data_dir: Path, any_storage: str
):
    if any_storage != "files":
        return
    top = data_dir / "attachments"
    odd = [os.fsencode(top / "ab") + b"/\xff", os.fsencode(top) + b"/\xfe/file"]
    for file in odd:
        os.makedirs(os.path.dirname(file), exist_ok=True)
        Path(os.fsdecode(file)).touch()
        os.utime(file, (1, 1))
    put("ab/old", days=31)
    put("ff/old", days=31)
    assert swept() == Swept(files=2, missing=0)
    assert all(map(os.path.exists, odd))


def test_a_directory_that_cannot_be_read_does_not_keep_the_rest(
    attachment: Attachment,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    put("lost+found/file", days=31)
    put("zz/old", days=31)
    listdir = storages[ALIAS].listdir

    def listed(path: str) -> tuple[list[str], list[str]]:
        if path == "lost+found":
            raise PermissionError(13, "Permission denied", path)
        return listdir(path)

    monkeypatch.setattr(storages[ALIAS], "listdir", listed)
    assert swept() == Swept(files=1, missing=0)
    assert "attachment.unswept" in caplog.messages


def test_what_is_in_a_directory_that_cannot_be_read_is_not_said_to_be_lost(
    attachment: Attachment, monkeypatch: pytest.MonkeyPatch
):
    """Of a file in it the system says that it is not there."""
    above = str(attachment.file.name).partition("/")[0]
    storage = storages[ALIAS]
    listdir = storage.listdir

    def listed(path: str) -> tuple[list[str], list[str]]:
        if path == above:
            raise PermissionError(13, "Permission denied", path)
        return listdir(path)

    monkeypatch.setattr(storage, "listdir", listed)
    exists = storage.exists
    monkeypatch.setattr(
        storage, "exists", lambda name: not name.startswith(above) and exists(name)
    )
    assert swept() == NOTHING
    attachment.refresh_from_db()
    assert attachment.missing_at is None


def test_a_file_of_which_the_storage_tells_no_age_does_not_keep_the_rest(
    attachment: Attachment,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    put("ab/odd", days=31)
    put("ab/old", days=31)
    modified = storages[ALIAS].get_modified_time

    def asked(name: str) -> dt.datetime:
        if name == "ab/odd":
            raise ConnectionError("403")
        return modified(name)

    monkeypatch.setattr(storages[ALIAS], "get_modified_time", asked)
    assert swept().files == 1
    assert "attachment.failed" in caplog.messages


def test_a_large_directory_is_left_when_the_worker_stops(attachment: Attachment):
    for number in range(5):
        put(f"ab/{number}", days=31)

    def stops() -> bool:
        return len(stored()) <= 3

    assert sweep(dt.timedelta(days=30), stop=stops).files == 3
