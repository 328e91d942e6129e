"""The standard streams of commands that agents call, which may be closed, full, or take less than Unicode."""

from __future__ import annotations

import contextlib
import os
from typing import Any, TextIO, cast


class Unwritten(Exception):
    """An answer could not be written; the message says why."""


class _Stream:
    """A stream that may not be there; what it does not take is written as escapes."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _attempt(self, text: str | None) -> None:
        """Write the text, or, with None, what is waiting; raises OSError and ValueError."""
        if self._stream is None:
            raise ValueError("it is closed")
        try:
            if text is None:
                self._stream.flush()
            else:
                self._stream.write(_within(text, self._stream.encoding))
        except (OSError, ValueError):
            _forget(self._stream)
            raise


class _Answer(_Stream):
    def write(self, text: str) -> None:
        self._do(text)

    def flush(self) -> None:
        self._do(None)

    def _do(self, text: str | None) -> None:
        try:
            self._attempt(text)
        except (OSError, ValueError) as error:
            raise Unwritten(str(error)) from error


class _Words(_Stream):
    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._attempt(text)
            self._attempt(None)

    def flush(self) -> None:
        """All is written at once."""


def answer(stream: TextIO | None) -> TextIO:
    """Where an answer goes: raises :class:`Unwritten` where it does not arrive. None is a stream that is closed."""
    return cast("TextIO", _Answer(stream))


def words(stream: TextIO | None) -> TextIO:
    """Where errors go: what does not arrive is lost, and the exit status stays what it is."""
    return cast("TextIO", _Words(stream))


def _within(text: str, encoding: str | None) -> str:
    encoding = encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text


def _forget(stream: TextIO) -> None:
    """Have what still waits go nowhere: Python would try again as it exits, and say so with a traceback."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)
