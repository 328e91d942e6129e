"""An end like that by SIGKILL, at any step: from there on nothing that is still to be done has an effect, cleaning up neither."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from django.db import connection

_CHANGES = (
    "chmod",
    "link",
    "mkdir",
    "remove",
    "rename",
    "replace",
    "rmdir",
    "symlink",
    "unlink",
)


class Killed(BaseException):
    """The process is no more."""


class Killer:
    """Counts what changes something outside the process: on the disk, in the database, and every git; ends it before one of these."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def step(self) -> None:
        if self.left <= 0:
            raise Killed
        self.left -= 1

    def before(self, wrapped: Callable[..., Any]) -> Callable[..., Any]:
        def dying(*args: Any, **options: Any) -> Any:
            self.step()
            return wrapped(*args, **options)

        return dying

    def asked(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, _: Any
    ) -> Any:
        if self.left <= 0 or not sql.lstrip().upper().startswith("SELECT"):
            self.step()
        return execute(sql, params, many, _)


@contextmanager
def killed_after(steps: int) -> Iterator[Killer]:
    """Within the block. ``left`` is 0 where it came to that."""
    killer = Killer(steps)
    popen = subprocess.Popen.__init__
    with (
        pytest.MonkeyPatch.context() as patched,
        connection.execute_wrapper(killer.asked),
    ):
        for name in _CHANGES:
            patched.setattr(os, name, killer.before(getattr(os, name)))
        patched.setattr(subprocess.Popen, "__init__", killer.before(popen))
        with suppress(Killed):
            yield killer
