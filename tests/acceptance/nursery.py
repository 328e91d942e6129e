"""Workers by the dozen, forked from a process that has loaded Django: in milliseconds instead of a second each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from types import TracebackType

from tests.acceptance.product import ROOT, Product


class Nursery:
    """Starts workers of a product, each of which is killed at the end at the latest."""

    def __init__(self, product: Product) -> None:
        self._directory = product.directory
        self._pids: list[int] = []
        self._forking = subprocess.Popen(
            [sys.executable, "-m", "tests.acceptance.forking"],
            cwd=ROOT,
            env=product.env(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Nursery:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._forking.communicate()

    def worker(self) -> int:
        """Start one; its pid."""
        log = self._directory / f"worker-{len(self._pids)}.log"
        assert self._forking.stdin is not None
        assert self._forking.stdout is not None
        self._forking.stdin.write(f"{log}\n")
        self._forking.stdin.flush()
        self._pids.append(int(self._forking.stdout.readline()))
        return self._pids[-1]

    def kill(self, pid: int) -> None:
        """End it as for want of memory."""
        os.kill(pid, signal.SIGKILL)

    def tail(self) -> str:
        """The ends of what its workers logged last."""
        logs = sorted(
            self._directory.glob("worker-*.log"), key=lambda log: log.stat().st_mtime
        )
        return "\n".join(log.read_text()[-2_000:] for log in logs[-2:])
