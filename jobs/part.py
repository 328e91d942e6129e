"""What the side threads of a worker process have in common: they start, are watched, and stop."""

from __future__ import annotations

import threading


class Part(threading.Thread):
    """A side thread. The process watches it: one that ends before it was told to ends the process.

    Subclasses implement :meth:`work`, which returns once ``stopping`` is set.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.stopping = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:
            self.error = error

    def work(self) -> None:
        """The thread's loop."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ask the thread to end; returns at once."""
        self.stopping.set()
