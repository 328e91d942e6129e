from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import SuspiciousFileOperation
from django.core.files.base import ContentFile
from pytest_django import Settings

from tests.workspaces.storages import MEMORY, use
from workspaces.models import Attachment
from workspaces.storing import storage
from workspaces.storing.storage import attachment_storage, new_file_name


def test_bytes_lie_below_the_data_directory_for_the_service_account_alone(
    data_dir: Path,
):
    name = attachment_storage().save("ab/cd", ContentFile(b"x"))
    path = data_dir / "attachments" / name
    assert path.read_bytes() == b"x"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_no_url_leads_to_them():
    with pytest.raises(ValueError, match="no URL"):
        attachment_storage().url("ab/cd")


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x"])
def test_a_name_that_leads_out_is_refused(name: str):
    with pytest.raises(SuspiciousFileOperation):
        attachment_storage().delete(name)


def test_a_files_name_is_nobodys_choice():
    names = {new_file_name(None, "../../evil.html") for _ in range(100)}
    assert len(names) == 100
    assert all("evil" not in name and name.count("/") == 1 for name in names)


def test_links_are_not_listed(data_dir: Path, tmp_path: Path):
    top = data_dir / "attachments"
    (top / "ab").mkdir(parents=True)
    (top / "file").touch()
    (top / "link").symlink_to(top / "file")
    (top / "elsewhere").symlink_to(tmp_path)
    assert attachment_storage().listdir("") == (["ab"], ["file"])


def test_another_storage_takes_the_place_of_the_files(
    settings: Settings, data_dir: Path
):
    use(settings, MEMORY)
    attachment_storage().save("ab/cd", ContentFile(b"x"))
    # The field's own, too, which was made before.
    of_the_field = Attachment(file="ab/cd").file
    with of_the_field.open("rb") as content:
        assert content.read() == b"x"
    assert not data_dir.exists()


def test_files_are_on_this_hosts_disk_and_other_storages_everywhere(settings: Settings):
    assert storage.home() == "test-host"
    assert storage.description() == "workspaces.storing.storage.AttachmentStorage"
    use(settings, MEMORY)
    assert storage.home() == ""
