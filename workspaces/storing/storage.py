"""Where the bytes of attachments are kept: the storage ``attachments`` of ``STORAGES``, whatever it is.

Nothing is asked of it but Django's storage API. By default they are files below ``ACW_DATA_DIR``, which no URL leads to.
"""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.files.storage import FileSystemStorage, Storage, storages

from workspaces import paths

if TYPE_CHECKING:
    from workspaces.models import Attachment

ALIAS = "attachments"


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

    def listdir(self, path: str) -> tuple[list[str], list[str]]:
        """Links are not listed: what they lead to is not ours."""
        directories: list[str] = []
        files: list[str] = []
        with os.scandir(self.path(path)) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    directories.append(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    files.append(entry.name)
        return directories, files

    def url(self, name: str | None) -> str:
        """Raises: attachments are downloaded through views that ask who may see them."""
        raise ValueError("attachments have no URL of their own")


class ConfiguredStorage(Storage):
    """The storage that ``STORAGES`` has at the moment of each use; every attribute is that one's."""

    def __getattribute__(self, name: str) -> Any:
        return getattr(storages[ALIAS], name)


def attachment_storage() -> Storage:
    return ConfiguredStorage()


def home() -> str:
    """The host on whose disk attachments are kept; ``""`` where every host reaches their storage."""
    if isinstance(storages[ALIAS], FileSystemStorage):
        host: str = settings.ACW_HOST
        return host
    return ""


def description() -> str:
    """The storage's class, as people are told of it."""
    kind = type(storages[ALIAS])
    return f"{kind.__module__}.{kind.__qualname__}"


def new_file_name(attachment: Attachment | None, name: str) -> str:
    """A name that nobody chose and no file has had; in 256 directories, so that none grows large."""
    unique = uuid.uuid4().hex
    return f"{unique[:2]}/{unique}"
