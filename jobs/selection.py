"""Which queues a worker serves."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from django.conf import settings

from jobs import registry

HOST_PREFIX = "host:"
"""Jobs about what lies on one host's disk wait in ``host:<ACW_HOST>``; only that host's workers take them."""


FORGOTTEN_AFTER = 600.0
"""Seconds."""


def host_queue(host: str) -> str:
    """The queue of the jobs that only this host can do."""
    return HOST_PREFIX + host


class Queues:
    """The queues of one worker: those it was told, or all but the other hosts'.

    "All" are those of the registered types and this host's own, and whatever else turns up in the
    table or in a notification; of those, one that has not turned up for ``FORGOTTEN_AFTER`` is left out again,
    since each costs a look at every claim.
    """

    def __init__(self, only: Iterable[str] | None = None) -> None:
        self._fixed = only is not None
        self._names = set(only or ())
        self._seen: dict[str, float] = {}
        self._discovering = threading.Lock()
        if not self._fixed:
            self._names.add(registry.DEFAULT_QUEUE)
            self._names.add(host_queue(settings.ACW_HOST))
            self._names.update(
                job_type.queue for job_type in registry.job_types().values()
            )

    def names(self) -> list[str]:
        """The names in alphabetical order."""
        return sorted(self._names | self._seen.keys())

    def discover(self, names: Iterable[str]) -> bool:
        """Take in what was found, where it is for this worker; return whether any of it is."""
        now = time.monotonic()
        mine = {name for name in names if self._serves(name)}
        with self._discovering:  # by the heartbeat and by the listener
            seen = self._seen | dict.fromkeys(mine - self._names, now)
            # A new dict, since other threads may be walking the old one.
            self._seen = {
                name: at for name, at in seen.items() if now - at < FORGOTTEN_AFTER
            }
        return bool(mine)

    def _serves(self, name: str) -> bool:
        if self._fixed:
            return name in self._names
        return not name.startswith(HOST_PREFIX) or name == host_queue(settings.ACW_HOST)
