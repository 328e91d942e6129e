"""How many fetches there may be at once from one remote host, over all processes of this machine.

A slot is a file that is locked, so that it is free again when its holder is gone, however it went.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator

from django.conf import settings

from workspaces import paths, remotes
from workspaces.exceptions import RemoteBusy
from workspaces.plumbing import locking


@contextlib.contextmanager
def taken(url: str) -> Iterator[None]:
    """Hold one of the slots of the remote's host during the block; a path has no host, and needs none.

    Raises :class:`~workspaces.exceptions.RemoteBusy` where ``ACW_GIT_HOST_LIMIT`` are taken.
    """
    host = remotes.host_of(url)
    if not host:
        yield
        return
    descriptor = _take(host)
    try:
        yield
    finally:
        locking.close(descriptor)


def _take(host: str) -> int:
    directory = paths.slots_directory()
    directory.mkdir(parents=True, exist_ok=True)
    # A host's name may be longer than a file's.
    key = hashlib.sha256(host.encode()).hexdigest()[:32]
    for number in range(settings.ACW_GIT_HOST_LIMIT):
        descriptor = locking.try_lock(directory / f"{key}-{number}")
        if descriptor is not None:
            return descriptor
    raise RemoteBusy(
        f"{settings.ACW_GIT_HOST_LIMIT} fetches from {host} are under way (ACW_GIT_HOST_LIMIT); try again soon"
    )
