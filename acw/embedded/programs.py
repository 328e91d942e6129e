"""Runs PostgreSQL's programs, as the user and in the environment that they need."""

from __future__ import annotations

import os
import subprocess

from acw.embedded import binaries
from acw.embedded.server_user import ServerUser


def run(
    name: str, *arguments: str, user: ServerUser | None
) -> subprocess.CompletedProcess[str]:
    """Run it to its end; its exit status is the caller's to judge."""
    return subprocess.run(  # noqa: S603 - the wheel's own program, no shell
        [str(binaries.program(name)), *arguments],
        # None of the caller's PG* variables, which the server would heed as well.
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        # Ctrl-C in the terminal is not for it.
        start_new_session=True,
        cwd="/",  # the server's user need not be able to enter the caller's
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        user=user.uid if user else None,
        group=user.gid if user else None,
        extra_groups=[] if user else None,
    )
