"""How long each step of an exchange takes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Literal

from notify.exchange import Phases

Step = Literal["dns_ms", "connect_ms", "tls_ms", "answer_ms"]


class Stopwatch:
    """Measures one exchange, a step at a time."""

    def __init__(self) -> None:
        self._took: dict[Step, float] = {}

    @contextlib.contextmanager
    def measure(self, step: Step) -> Iterator[None]:
        """Time what is inside, also where it fails."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._took[step] = (time.monotonic() - began) * 1000

    @property
    def phases(self) -> Phases:
        """What was measured up to now."""
        return Phases(**self._took)
