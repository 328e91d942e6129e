"""What the side threads of a worker process have in common: they start, are watched, and stop."""

from __future__ import annotations

import threading
import time

from jobs.progress import Progress, look_every


class Part(threading.Thread):
    """A side thread. The process watches it: one that ends before it was told to ends the process, and so does one that
    leaves no sign of progress for too long.

    Subclasses implement :meth:`work`, which returns once ``stopping`` is set, and wait by :meth:`wait`.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.stopping = threading.Event()
        self.error: BaseException | None = None
        self.progress = Progress(name)

    def run(self) -> None:
        self.progress.moved()
        try:
            self.work()
        except BaseException as error:
            self.error = error

    def work(self) -> None:
        """The thread's loop."""
        raise NotImplementedError

    def wait(self, seconds: float) -> None:
        """Wait so long, or until the thread is told to stop; a wait that will end is progress."""
        until = time.monotonic() + seconds
        while True:
            self.progress.moved()
            left = until - time.monotonic()
            if left <= 0 or self.stopping.wait(min(left, look_every())):
                return

    def stop(self) -> None:
        """Ask the thread to end; returns at once."""
        self.stopping.set()
