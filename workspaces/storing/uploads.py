"""What is asked of a file before it becomes an attachment: its name, its type, its size. Nothing is believed of who sends it."""

from __future__ import annotations

import hashlib
import re
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings
from django.core.files.base import ContentFile, File

from workspaces.exceptions import AttachmentError
from workspaces.upkeep.sizes import in_words

NAME_MAX_BYTES = 255
"""As file systems have it; a name that is longer could not be saved by who downloads it."""

UNKNOWN_TYPE = "application/octet-stream"

_IN_MEMORY = 1024 * 1024
_CHUNK = 64 * 1024
_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
# Words are joined and parted by them in Persian, Hindi and emoji; every other format character is refused.
_JOINERS = {"\N{ZERO WIDTH JOINER}", "\N{ZERO WIDTH NON-JOINER}"}
_OF_DEVICES = re.compile(r"(?i)(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?")


def checked_name(name: str) -> str:
    """The name as it is kept: composed, and with plain spaces.

    Raises :class:`~workspaces.exceptions.AttachmentError` for one that is no plain file name, or that would show as
    another than it is.
    """
    if not isinstance(name, str):
        raise AttachmentError(f"name: must be text, got {name!r:.300}")
    cleaned = unicodedata.normalize("NFC", name[: 2 * NAME_MAX_BYTES])
    # Names of screenshots have spaces of other kinds.
    cleaned = "".join(
        " " if unicodedata.category(each) == "Zs" else each for each in cleaned
    )
    if problem := _problem_with(cleaned):
        raise AttachmentError(f"name: {problem}, got {name!r:.300}")
    return cleaned


def _problem_with(name: str) -> str:
    if not all(each.isprintable() or each in _JOINERS for each in name):
        return "must be printable text, without marks that change its direction"
    if not 0 < len(name.encode()) <= NAME_MAX_BYTES:
        return f"must have 1 to {NAME_MAX_BYTES} bytes"
    if "/" in name or "\\" in name or name in {".", ".."}:
        return "must be a file's name without directories"
    if name != name.strip(" ") or name.endswith("."):
        return "must not begin with a space, nor end with one or with a dot"
    if _OF_DEVICES.fullmatch(name):
        return "must not be a name that systems reserve for devices"
    return ""


def checked_type(content_type: str) -> str:
    """The type, such as ``text/plain``, without parameters.

    Raises :class:`~workspaces.exceptions.AttachmentError` for what is none, and for one that ``ACW_ATTACHMENT_TYPES`` has not.
    """
    if not isinstance(content_type, str):
        raise AttachmentError(f"content_type: must be text, got {content_type!r:.300}")
    bare = content_type.partition(";")[0].strip().lower()
    if not _TYPE.fullmatch(bare):
        raise AttachmentError(
            f"content_type: must be like text/plain, got {content_type!r:.300}"
        )
    accepted = [each.lower() for each in settings.ACW_ATTACHMENT_TYPES]
    if not {"*/*", bare, f"{bare.partition('/')[0]}/*"}.intersection(accepted):
        raise AttachmentError(
            f"content_type: {bare} is not accepted; ACW_ATTACHMENT_TYPES has {', '.join(accepted)}"
        )
    return bare


def check_size(size: int) -> None:
    """Raise :class:`~workspaces.exceptions.AttachmentError` for more bytes than ``ACW_ATTACHMENT_MAX_SIZE``."""
    largest: int = settings.ACW_ATTACHMENT_MAX_SIZE
    if size > largest:
        raise AttachmentError(
            f"content: larger than {in_words(largest)} (ACW_ATTACHMENT_MAX_SIZE)"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """Bytes that were read to their end: how many they are, and their SHA-256 in hexadecimal."""

    content: File[bytes]
    size: int
    digest: str


@contextmanager
def measured(content: bytes | File[bytes]) -> Iterator[Measured]:
    """Read all of ``content``, from its beginning, and no more than is accepted.

    Raises :class:`~workspaces.exceptions.AttachmentError` as soon as it is too large: what it says of its own size counts for nothing;
    and for what are no bytes.
    """
    source = ContentFile(content) if isinstance(content, bytes) else content
    if not isinstance(source, File):
        raise AttachmentError(
            f"content: must be bytes or a django.core.files.File, such as File(stream), got {type(content).__name__}"
        )
    size, digest = 0, hashlib.sha256()
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spool:
        for chunk in source.chunks(_CHUNK):
            if not isinstance(chunk, bytes):
                raise AttachmentError("content: must be opened to read bytes, not text")
            size += len(chunk)
            check_size(size)
            digest.update(chunk)
            spool.write(chunk)
        spool.seek(0)
        read: File[bytes] = File(spool, name="")
        # What is in memory has no name by which Django would ask for it.
        read.size = size
        yield Measured(content=read, size=size, digest=digest.hexdigest())
