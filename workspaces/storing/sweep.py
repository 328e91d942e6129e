"""Attachments' bytes and rows compared: bytes that have no row are deleted, rows that have no bytes are marked and told.

The storage is walked a directory at a time, so that one listing answers both questions and little is held in memory.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeVar

from django.core.exceptions import SuspiciousOperation
from django.db import connection, transaction
from django.db.models import CharField, F, Func, Value

from jobs.redaction import words
from workspaces import attachments
from workspaces.events import LogEvent
from workspaces.models import Attachment
from workspaces.querysets import AttachmentQuerySet, in_batches
from workspaces.storing import file_claims, missing, ownership, storage

log = logging.getLogger(__name__)

_T = TypeVar("_T")

UNRECORDED_AGE = dt.timedelta(hours=1)
"""A file younger than this may be of an upload that has just begun."""

_DEEPEST = 8
_DIRECTORY = Func(
    F("file"),
    Value("/?[^/]*$"),
    Value(""),
    function="regexp_replace",
    output_field=CharField(),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Swept:
    """How many files without a row were deleted, and how many rows turned out to have no bytes."""

    files: int
    missing: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Listed:
    """One directory of the storage: the full names of its files."""

    directory: str
    names: set[str] = field(default_factory=set)


def sweep(retention: dt.timedelta, *, stop: Callable[[], bool]) -> Swept:
    """Delete files without a row that are older than ``retention``, and mark rows whose bytes are gone.

    A storage that cannot be listed is asked for the bytes of each row; that its files without a row are not found is
    logged. Raises what the storage raises otherwise.
    """
    oldest = _now() - max(retention, UNRECORDED_AGE)
    marks = missing.Marks()
    reason = (
        ownership.refusal()
        if _has_ever_stored()
        else "this database has never had an attachment"
    )
    if reason:
        _tell_unswept(reason)
    files = 0
    seen: list[str] = []
    try:
        for listed in _walk(seen, stop):
            unrecorded = _compare(listed, marks)
            if not reason:
                files += sum(_delete(name, oldest) for name in _until(unrecorded, stop))
    except NotImplementedError:
        _tell_unswept("it does not list its files, or not tell their ages")
        _ask_for_each(_mine(), marks, stop)
    else:
        elsewhere = _mine().alias(directory=_DIRECTORY).exclude(directory__in=seen)
        _ask_for_each(elsewhere, marks, stop)
    marks.write()
    return Swept(files=files, missing=marks.lost)


def _has_ever_stored() -> bool:
    """Whether this database has ever had an attachment. In one that has not, files without a row are another's."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_sequence_last_value(pg_get_serial_sequence('attachments', 'id')) IS NOT NULL"
        )
        (stored,) = cursor.fetchone()
    return bool(stored)


def _tell_unswept(reason: str) -> None:
    log.warning(
        LogEvent.ATTACHMENT_UNSWEPT,
        extra={"storage": storage.description(), "reason": reason},
    )


def _now() -> dt.datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        (now,) = cursor.fetchone()
    return now  # type: ignore[no-any-return]


def _mine() -> AttachmentQuerySet:
    return Attachment.objects.reached_from(storage.home())


def _walk(seen: list[str], stop: Callable[[], bool]) -> Iterator[_Listed]:
    """Every directory of the storage, one after the other; what is there comes to ``seen``."""
    waiting = [("", 0)]
    while waiting and not stop():
        directory, depth = waiting.pop()
        try:
            directories, files = storage.attachment_storage().listdir(directory)
        except (FileNotFoundError, NotADirectoryError):
            continue  # nothing was stored yet, or it has just gone
        except PermissionError:  # a disk's own, say
            _tell_unswept(f"its directory {directory or '/'} may not be listed")
            seen.append(directory)  # of what is in it nothing is known, either way
            continue
        seen.append(directory)
        names = [*directories, *files]
        if not all(map(_is_text, names)):
            _tell_unswept(
                f"in its directory {directory or '/'} there are names that are no text"
            )
        prefix = f"{directory}/" if directory else ""
        if depth < _DEEPEST:
            below = filter(_is_text, directories)
            waiting += [(prefix + each, depth + 1) for each in below if each]
        # Some storages list the directory itself as a file without a name.
        kept = {prefix + each for each in filter(_is_text, files) if each}
        yield _Listed(directory=directory, names=kept)


def _is_text(name: str) -> bool:
    """Whether a row could have the name; a disk takes any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _compare(listed: _Listed, marks: missing.Marks) -> list[str]:
    """Compare a directory's files with their rows; return the files that have none."""
    # Whatever their host: the directory may be one that several hosts share.
    rows = Attachment.objects.alias(directory=_DIRECTORY)
    if listed.directory:
        rows = rows.filter(file__startswith=f"{listed.directory}/")
    rows = rows.filter(directory=listed.directory)
    here = storage.home()
    recorded: set[str] = set()
    for row in rows.only("file", "host", "missing_at", "name"):
        name = row.file.name or ""
        recorded.add(name)
        if here and row.host != here:
            continue
        if name in listed.names:
            if row.missing_at is not None:
                marks.found(row)
        # It may have been stored after the listing.
        elif row.missing_at is None and not exists(name):
            marks.lose(row)
    return sorted(listed.names - recorded - {ownership.MARK})


def _delete(name: str, oldest: dt.datetime) -> bool:
    """Delete a file that has no row, if it is old, and nobody is just giving it one."""
    try:
        if storage.attachment_storage().get_modified_time(name) >= oldest:
            return False
    except FileNotFoundError:
        return False
    except NotImplementedError:
        raise
    except Exception as error:  # whatever a storage of others may raise
        exists(ownership.MARK)  # Raises where the storage does not answer at all.
        log.error(
            LogEvent.ATTACHMENT_FAILED, extra={"file": name, "error": words(error)}
        )
        return False
    with transaction.atomic():
        if not file_claims.try_claim(name):
            return False
        # Once more: it may have been recorded since.
        if Attachment.objects.filter(file=name).exists():
            return False
        deleted = attachments.discard(name)
    if deleted:
        log.info(LogEvent.ATTACHMENT_FILE_REMOVED, extra={"file": name})
    return deleted


def _ask_for_each(
    rows: AttachmentQuerySet, marks: missing.Marks, stop: Callable[[], bool]
) -> None:
    for row in _until(in_batches(rows.only("file", "missing_at", "name")), stop):
        there = exists(row.file.name or "")
        if there and row.missing_at is not None:
            marks.found(row)
        elif not there and row.missing_at is None:
            marks.lose(row)


def _until(each: Iterable[_T], stop: Callable[[], bool]) -> Iterator[_T]:
    return takewhile(lambda _: not stop(), each)


def exists(name: str) -> bool:
    """Whether the storage has the file. Raises what the storage raises."""
    try:
        return storage.attachment_storage().exists(name)
    except SuspiciousOperation:  # the row was written by hand
        return False
