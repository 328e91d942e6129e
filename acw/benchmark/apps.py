"""The benchmark as an app, in the processes that are measured."""

from __future__ import annotations

from django.apps import AppConfig

from acw.benchmark import settings
from acw.scratch import tether


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
            tether.end_with_stdin()
