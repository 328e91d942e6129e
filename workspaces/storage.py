"""Where the bytes of attachments are kept: files below ``ACW_DATA_DIR``, which no URL leads to."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.core.files.storage import FileSystemStorage

from workspaces import paths

if TYPE_CHECKING:
    from workspaces.models import Attachment


class AttachmentStorage(FileSystemStorage):
    """Files that only the service account can read; the directory is looked up at each use."""

    def __init__(self) -> None:
        super().__init__(file_permissions_mode=0o600, directory_permissions_mode=0o700)

    @property
    def base_location(self) -> str:
        return str(paths.attachments_directory())

    @property
    def location(self) -> str:
        return self.base_location

    def url(self, name: str | None) -> str:
        """Raises: attachments are downloaded through views that ask who may see them."""
        raise ValueError("attachments have no URL of their own")


def attachment_storage() -> AttachmentStorage:
    return AttachmentStorage()


def new_file_name(attachment: Attachment | None, name: str) -> str:
    """A name that nobody chose and no file has had; in 256 directories, so that none grows large."""
    unique = uuid.uuid4().hex
    return f"{unique[:2]}/{unique}"
