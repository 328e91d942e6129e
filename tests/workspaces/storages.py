"""The storages of attachments that everything is tested with: files, and one that is in memory."""

from __future__ import annotations

import datetime as dt
import os
import time

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, InMemoryStorage, storages
from django.utils import timezone
from pytest_django import Settings

from workspaces.models import Attachment
from workspaces.storing.ownership import MARK
from workspaces.storing.storage import ALIAS, attachment_storage

MEMORY = "django.core.files.storage.InMemoryStorage"


def use(settings: Settings, backend: str) -> None:
    """Attachments are kept by this class from now on."""
    settings.STORAGES = {**settings.STORAGES, ALIAS: {"BACKEND": backend}}


@pytest.fixture(params=["files", "memory"])
def any_storage(request: pytest.FixtureRequest, settings: Settings) -> str:
    """The test runs once with each storage."""
    if request.param == "memory":
        use(settings, MEMORY)
    return str(request.param)


def stored(directory: str = "") -> set[str]:
    """The names of all files but the storage's mark."""
    try:
        directories, files = attachment_storage().listdir(directory)
    except FileNotFoundError:
        return set()
    prefix = f"{directory}/" if directory else ""
    found = {prefix + name for name in files} - {MARK}
    return found.union(*(stored(prefix + name) for name in directories))


def put(name: str, **age: float) -> str:
    """Store a file that has no row, as old as this."""
    attachment_storage().save(name, ContentFile(b"x"))
    make_old(name, **age)
    return name


def make_old(name: str, **age: float) -> None:
    """As if the file had been written so long ago."""
    length = dt.timedelta(**age)
    kept = storages[ALIAS]
    if isinstance(kept, InMemoryStorage):
        kept._resolve(name).modified_time = timezone.now() - length  # type: ignore[attr-defined]
    else:
        assert isinstance(kept, FileSystemStorage)
        then = time.time() - length.total_seconds()
        os.utime(kept.path(name), (then, then))


def lose(attachment: Attachment) -> None:
    """Delete its bytes, as nobody should."""
    attachment_storage().delete(str(attachment.file.name))
