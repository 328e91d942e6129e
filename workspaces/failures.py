"""What kind of failure a git command's is: decides whether it is told, tried again, and when.

Git and ssh say it in English, since they are run so. What a remote says of itself is among it, so a hostile one
chooses the class of its own failures, and nothing else.
"""

from __future__ import annotations

import errno
import re

from django.db import models

from workspaces.exceptions import (
    CloneMissing,
    ConfigTampered,
    GitDamaged,
    GitError,
    GitOutputTooLarge,
    GitTimeout,
    OutsideDataDirectory,
    RefusedUrl,
)


class Failure(models.TextChoices):
    """The classes of a fetch that failed; one that worked has none."""

    AUTH = "auth"
    NOT_FOUND = "not_found"
    HOST_KEY = "host_key"
    NETWORK = "network"
    TIMEOUT = "timeout"
    LOCK = "lock"
    CORRUPT = "corrupt"
    DISK_FULL = "disk_full"
    REFUSED = "refused"
    CONFIG_TAMPERED = "config_tampered"


_OF_ERRORS: tuple[tuple[type[Exception], Failure], ...] = (
    (RefusedUrl, Failure.REFUSED),
    (OutsideDataDirectory, Failure.REFUSED),
    (CloneMissing, Failure.REFUSED),
    (GitOutputTooLarge, Failure.REFUSED),
    (ConfigTampered, Failure.CONFIG_TAMPERED),
    (GitTimeout, Failure.TIMEOUT),
    (GitDamaged, Failure.CORRUPT),
)
_OF_NUMBERS = {
    errno.ENOSPC: Failure.DISK_FULL,
    errno.EDQUOT: Failure.DISK_FULL,
    errno.EIO: Failure.CORRUPT,
    errno.EFBIG: Failure.REFUSED,
}
# The first that is found counts: of "Host key verification failed" and what ssh says after it, say. Every repetition is
# bounded, so that what a remote says costs no more than its length.
_OF_WORDS = tuple(
    (failure, re.compile("|".join(patterns)))
    for failure, patterns in (
        (
            Failure.DISK_FULL,
            ("No space left on device", "Disk quota exceeded"),
        ),
        (
            Failure.REFUSED,
            (
                # SIGXFSZ: a file would have become larger than ACW_GIT_MAX_FILE.
                "died of signal 25",
                "File too large",
                r"transport '[^'\n]{0,50}' not allowed",
                r"strange \w{1,20} '",
                "detected dubious ownership",
                "mismatched algorithms",
                "the remote's history is cut off",
            ),
        ),
        (
            Failure.LOCK,
            (
                r"\.lock': File exists",
                "Another git process seems to be running",
                "could not lock config file",
                r"but expected [0-9a-f]{40}",
                "shallow file has changed since we read it",
            ),
        ),
        (
            Failure.HOST_KEY,
            (
                "Host key verification failed",
                "HOST IDENTIFICATION HAS CHANGED",
                "host key is known for",
                "SSL certificate problem",
                "server certificate verification failed",
                "SSL: no alternative certificate subject name",
                "SSL: certificate subject name",
                "certificate has expired",
            ),
        ),
        (
            Failure.AUTH,
            (
                "Authentication failed for",
                "could not read (?:Username|Password) for",
                r"Permission denied \(",
                "Too many authentication failures",
                "returned error: 40[137]",
                "Permission to [^\n]{1,200} denied",
                "HTTP Basic: Access denied",
                "DENIED by fallthru",
            ),
        ),
        (
            Failure.NOT_FOUND,
            (
                r"repository '[^'\n]{0,2000}' not found",
                "Repository not found",
                "does not appear to be a git repository",
                "returned error: (?:404|410)",
                "could not be found or you don't have permission",
                "does not exist or you do not have (?:access|permission)",
            ),
        ),
        (
            Failure.CORRUPT,
            (
                "object file [^\n]{1,300} is empty",
                "is corrupt",
                "corrupt loose object",
                "does not match index",
                r"packfile [^\n]{1,300} (?:cannot|is|has|claims)",
                "bad object",
                "bad tree object",
                "missing (?:blob|tree|commit)",
                "unable to (?:parse|unpack|read|find) [0-9a-f]{40}",
                "unable to read sha1 file",
                "inflate: data stream error",
                "did not send all necessary objects",
                "hash mismatch",
                "Could not read [0-9a-f]{40}",
                "failed to (?:read|traverse)",
                "reference broken",
                r"(?:unexpected|unterminated) line in [^\n]{1,4000}packed-refs",
                "not a git repository: '/",
                "nonexistent object",
                "unresolved deltas?",
                "index file [^\n]{1,300} is too small",
                "wrong index v",
                "multi-pack-index (?:signature|version|hash version|file) ",
            ),
        ),
        (
            Failure.TIMEOUT,
            (
                "Connection timed out",
                "Operation timed out",
                "Operation too slow",
                "Timeout was reached",
                "[Tt]imeout, server [^\n]{1,300} not responding",
            ),
        ),
    )
)
_DAMAGED = dict(_OF_WORDS)[Failure.CORRUPT]


def classify(error: Exception) -> Failure:
    """The class of what a fetch or clone raised; what nothing is known of counts as the network's."""
    for kind, failure in _OF_ERRORS:
        if isinstance(error, kind):
            return failure
    if isinstance(error, OSError):
        return _OF_NUMBERS.get(error.errno or 0, Failure.NETWORK)
    if isinstance(error, GitError):
        # A program that could not even be begun says why in its message.
        said = error.stderr or str(error)
        for failure, words in _OF_WORDS:
            if words.search(said):
                return failure
    return Failure.NETWORK


def tells_of_damage(stderr: str) -> bool:
    """Whether git complains of damaged objects, which it does of some without failing."""
    return bool(stderr) and _DAMAGED.search(stderr) is not None
