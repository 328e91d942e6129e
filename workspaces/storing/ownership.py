"""Whose the files of a storage are: it bears a mark of the database whose attachments it keeps.

Otherwise the sweep of another database would take all of them for leftovers. A copy of a database cannot be told from one that was
restored from a backup, and has the mark of its original.
"""

from __future__ import annotations

from django.core.files.base import ContentFile
from django.db import connection

from workspaces import attachments
from workspaces.storing import storage

MARK = "database"
"""The name of the mark; attachments have directories in theirs."""

_LONGEST = 100


def refusal() -> str:
    """Why files that have no row are not this database's to delete, in words; "": they are.

    A storage that has files and no mark is given it. Raises what the storage raises when it is read.
    """
    ours = _database()
    theirs = _mark()
    if theirs is None:
        return _write(ours) if _has_files() else ""
    if theirs == ours:
        return ""
    return (
        f"its file {MARK} has the mark of another database; where they share it, give each a storage of its own, and where this"
        " one has taken the other's place, delete that file"
    )


def _database() -> str:
    """The same for as long as the database lives, also after it is restored from a backup."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT md5(to_char(min(applied) AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISSUS')) FROM django_migrations"
        )
        (mark,) = cursor.fetchone()
    return str(mark)


def _mark() -> str | None:
    try:
        with storage.attachment_storage().open(MARK, "rb") as file:
            read: bytes = file.read(_LONGEST)
    except FileNotFoundError:
        return None
    return read.decode(errors="replace").strip()


def _has_files() -> bool:
    try:
        return any(storage.attachment_storage().listdir(""))
    except (FileNotFoundError, NotImplementedError):
        return False  # a disk that is not mounted, say


def _write(mark: str) -> str:
    kept = storage.attachment_storage()
    try:
        name = kept.save(MARK, ContentFile(f"{mark}\n".encode()))
    except Exception as error:  # whatever a storage of others may raise
        return f"its file {MARK} could not be written: {type(error).__name__}"
    if name != MARK:
        attachments.discard(name)  # one that renames keeps no mark
    return ""
