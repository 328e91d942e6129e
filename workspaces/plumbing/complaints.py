"""What git says of a fetch in words alone: its exit status tells nothing of it, or not what is to be done."""

from __future__ import annotations

import re
import signal

from django.conf import settings

from workspaces import failures
from workspaces.exceptions import GitDamaged, GitError, GitFailed, GitOutputTooLarge

# Its own words, at the beginning of a line: what a remote says stands behind "remote: ".
_SHALLOW = re.compile(
    r"^warning: rejected [^\n]{1,4000} because shallow roots are not allowed",
    re.MULTILINE,
)
_TOO_LARGE = re.compile(
    rf"^error: [a-z-]{{1,50}} died of signal {signal.SIGXFSZ:d}$", re.MULTILINE
)


def refuse_half_done(stderr: str) -> None:
    """Raise :class:`~workspaces.exceptions.GitError` where git only complains, and goes on without what it should have fetched."""
    # Such as of a pack that does not match its index.
    if failures.tells_of_damage(stderr):
        raise GitDamaged("fetch", "complained of damage", stderr=stderr)
    if _SHALLOW.search(stderr):
        raise GitError(
            "fetch",
            "was refused: the remote's history is cut off (a shallow clone); "
            "give the URL of a whole one, or have it made whole there (`git fetch --unshallow`)",
        )


def in_our_words(error: GitFailed) -> GitError:
    """The error, or what it means where git names only a signal."""
    if not _TOO_LARGE.search(error.stderr):
        return error
    most = settings.ACW_GIT_MAX_FILE
    return GitOutputTooLarge(
        "fetch",
        f"would have to write a file of more than {most} bytes (ACW_GIT_MAX_FILE)",
    )
