"""The benchmark as an app, in the processes that are measured."""

from __future__ import annotations

import os
import threading

from django.apps import AppConfig

from acw.benchmark import settings

_STDIN = 0


class BenchmarkConfig(AppConfig):
    """Ties the process to the benchmark's, and sets what that wants otherwise than the product."""

    name = "acw.benchmark"
    label = "benchmark"

    def ready(self) -> None:
        from jobs import claims, estimates

        if settings.BENCHMARK_LARGEST_BATCH:
            # Also where it was taken from there.
            for module in (claims, estimates):
                vars(module)["LARGEST_BATCH"] = settings.BENCHMARK_LARGEST_BATCH
        if settings.BENCHMARK_TETHERED:
            threading.Thread(target=_end_with_stdin, daemon=True).start()


def _end_with_stdin() -> None:
    """Whoever started this process holds the other end; killed or not, its end is ours."""
    # Unbuffered: a buffer's lock, held here, would be a fatal error when the interpreter ends.
    while os.read(_STDIN, 1):
        pass
    os._exit(1)
