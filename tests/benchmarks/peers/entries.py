"""What the shared benchmark is told of ACW and the newer Python queues: the peers and their settings.

Each setting that was tried is listed, also those that turned out slow. Finished rows are kept where the
label does not say otherwise.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import seeds

HERE = Path(__file__).resolve().parent

# Counted by queue and by status, so that a million other rows do not slow the count down.
ACW_PENDING = (
    "SELECT (SELECT count(*) FROM jobs WHERE status = 'pending' AND queue = 'default'"
    " AND run_at <= now() AND type LIKE 'bench.%')"
    " + (SELECT count(*) FROM jobs WHERE status = 'running' AND type LIKE 'bench.%')"
)
AWA_COMPLETED = (
    "(SELECT coalesce(sum(completed_count), 0) FROM awa.receipt_completion_batches)"
    " + (SELECT count(*) FROM awa.done_entries WHERE state = 'completed')"
)
# Sorted sets; the harness itself counts the lists and hashes of its own Redis queues.
_THREADMILL_KEY = "threadmill:{default}:default:"


def add_to(bench: ModuleType) -> None:
    """Register everything with the harness, a module that is loaded already."""
    _add_peers(bench)
    _count_sorted_sets(bench)
    bench.CONFIGS.extend(_configs(bench))
    bench.GROWTH.update(
        {
            "acw": {"BENCH_CONCURRENCY": "2"},
            # Its "done" rows are dead jobs.
            "acw-dead": {"BENCH_CONCURRENCY": "2"},
            # So are these: completed rows do not stay.
            "acw-deleted": {"BENCH_CONCURRENCY": "2", "BENCH_DELETE": "1"},
            "django-ox": {"BENCH_CONCURRENCY": "4", "BENCH_VERBOSITY": "0"},
            "steady-queue": {"BENCH_CONCURRENCY": "10", "BENCH_POOL": "1"},
            "oban": {"BENCH_CONCURRENCY": "100"},
        }
    )
    bench.GROWTH_N.update({"django-ox": 2000, "steady-queue": 1000})
    bench.SEED_DONE.update(
        {
            "acw": seeds.ACW_COMPLETED,
            "acw-dead": seeds.ACW_DEAD,
            "acw-deleted": seeds.ACW_DEAD,
            "django-ox": seeds.OX_DONE,
            "steady-queue": seeds.STEADY_DONE,
            "oban": seeds.OBAN_DONE,
        }
    )
    bench.SEED_FUTURE.update(
        {
            "acw": seeds.ACW_FUTURE,
            "acw-dead": seeds.ACW_FUTURE,
            "acw-deleted": seeds.ACW_FUTURE,
            "django-ox": seeds.OX_FUTURE,
            "steady-queue": seeds.STEADY_FUTURE,
            "oban": seeds.OBAN_FUTURE,
        }
    )


def _add_peers(bench: ModuleType) -> None:
    def peer(script: str, pending: str, done: str = "", **more: object) -> object:
        # An absolute path, which stays what it is where the harness joins it to its own folder.
        return bench.Peer(str(HERE / script), pending, done, **more)

    acw_done = (
        "SELECT count(*) FROM jobs WHERE status = 'completed' AND type LIKE 'bench.%'"
    )
    steady_pending = (
        "SELECT count(*) FROM steady_queue_job"
        " WHERE finished_at IS NULL AND scheduled_at <= now()"
    )
    bench.PEERS.update(
        {
            "acw": peer("peer_acw.py", ACW_PENDING, acw_done),
            "acw-dead": peer("peer_acw.py", ACW_PENDING, acw_done),
            "acw-deleted": peer("peer_acw.py", ACW_PENDING),
            "django-ox": peer(
                "peer_django_ox.py",
                "SELECT count(*) FROM django_ox_oxtask WHERE status IN ('READY', 'RUNNING')"
                " AND (run_after IS NULL OR run_after <= now())",
                "SELECT count(*) FROM django_ox_oxtask WHERE status = 'SUCCESSFUL'",
                drain=3000,
            ),
            "steady-queue": peer(
                "peer_steady_queue.py",
                steady_pending,
                "SELECT count(*) FROM steady_queue_job WHERE finished_at IS NOT NULL",
                bulk=False,
                clone=seeds.STEADY_CLONE,
                drain=2000,
            ),
            "steady-queue-deleted": peer(
                "peer_steady_queue.py",
                steady_pending,
                bulk=False,
                clone=seeds.STEADY_CLONE,
                drain=2000,
            ),
            "oban": peer(
                "peer_oban.py",
                "SELECT count(*) FROM oban_jobs WHERE state IN ('available', 'executing')",
                "SELECT count(*) FROM oban_jobs WHERE state = 'completed'",
                drain=10000,
            ),
            "threadmill": bench.Peer(
                str(HERE / "peer_threadmill.py"),
                bulk=False,
                redis_keys=(2, "", ""),
                drain=5000,
            ),
            # Its own view of all jobs takes minutes to count a few thousand completed ones.
            "awa": peer(
                "peer_awa.py",
                f"SELECT (SELECT count(*) FROM awa.ready_entries) - ({AWA_COMPLETED})",
                f"SELECT {AWA_COMPLETED}",
            ),
        }
    )


def _count_sorted_sets(bench: ModuleType) -> None:
    """Teach the harness where threadmill keeps its jobs."""

    class Run(bench.Run):  # type: ignore[name-defined, misc]
        def pending(self) -> int:
            if self.name != "threadmill":
                return int(super().pending())
            return self._in("ready") + self._in("running")

        def done(self) -> int | None:
            if self.name != "threadmill":
                return super().done()  # type: ignore[no-any-return]
            return self._in("successful")

        def _in(self, name: str) -> int:
            return int(self.redis.zcard(_THREADMILL_KEY + name))

    bench.Run = Run  # type: ignore[attr-defined]


def _configs(bench: ModuleType) -> list[object]:
    deleted = {"BENCH_DELETE": "1"}
    awa_wide = {"BENCH_CONCURRENCY": "1024", "BENCH_CONNECTIONS": "20"}
    no_log = {"BENCH_VERBOSITY": "0"}
    steady = {"BENCH_CONCURRENCY": "10", "BENCH_POOL": "1"}
    threads = {"BENCH_CONCURRENCY": "8", "BENCH_PREFETCH": "100"}
    config = bench.Config
    return [
        config("acw", "2 threads, kept (defaults)", tests="ABC"),
        config("acw", "2 threads, kept (defaults)", workers=2),
        config("acw-deleted", "2 threads, deleted", deleted, tests="BC"),
        config("acw-deleted", "2 threads, deleted", deleted, workers=2),
        config("django-ox", "defaults, connection kept", tests="ABC"),
        config(
            "django-ox",
            "CONN_MAX_AGE=0 (Django's default)",
            {"BENCH_KEEP": "0"},
            n=1000,
        ),
        config("django-ox", "connection kept, no log lines", no_log),
        config(
            "django-ox", "psycopg pool, no log lines", {"BENCH_POOL": "1", **no_log}
        ),
        config(
            "django-ox",
            "concurrency 4, connection kept, no log lines",
            {"BENCH_CONCURRENCY": "4", **no_log},
        ),
        config("django-ox", "connection kept, no log lines", no_log, workers=2),
        config("django-ox", "--interval 0.05", {"BENCH_POLL": "0.05"}, tests="C"),
        config(
            "steady-queue",
            "defaults (3 threads, poll 0.1 s, connects for each task)",
            tests="ABC",
            n=500,
        ),
        config("steady-queue", "3 threads, psycopg pool", {"BENCH_POOL": "1"}),
        config("steady-queue", "10 threads, psycopg pool", steady),
        config(
            "steady-queue",
            "10 threads, psycopg pool, poll 0.01 s",
            {**steady, "BENCH_POLL": "0.01"},
            tests="BC",
        ),
        config(
            "steady-queue",
            "10 threads, psycopg pool, 2 processes under one supervisor",
            {**steady, "BENCH_PROCESSES": "2"},
        ),
        config(
            "steady-queue-deleted",
            "10 threads, psycopg pool, preserve_finished_jobs=False",
            {**steady, **deleted},
        ),
        config("oban", "limit 10 (default), uvloop", tests="ABC"),
        config("oban", "limit 100, uvloop", {"BENCH_CONCURRENCY": "100"}, tests="BC"),
        config("oban", "limit 1000, uvloop", {"BENCH_CONCURRENCY": "1000"}),
        config("oban", "limit 100, uvloop", {"BENCH_CONCURRENCY": "100"}, workers=2),
        config("awa", "defaults (max_workers 50, claim 512)", tests="ABC"),
        config("awa", "max_workers 1024", awa_wide, tests="BC"),
        config("awa", "max_workers 1024, 4 shards", {**awa_wide, "BENCH_SHARDS": "4"}),
        config(
            "awa", "max_workers 1024, 2 claimers", {**awa_wide, "BENCH_CLAIMERS": "2"}
        ),
        config("awa", "max_workers 1024", awa_wide, workers=2),
        config(
            "threadmill",
            "--workers 1, defaults; Redis not durable",
            {"BENCH_PROCESSES": "1"},
            tests="ABC",
        ),
        config(
            "threadmill",
            "--threads 8 --prefetch-count 100; Redis not durable",
            {"BENCH_PROCESSES": "1", **threads},
        ),
        config(
            "threadmill",
            "--workers 2 --threads 8 --prefetch-count 100; Redis not durable",
            {"BENCH_PROCESSES": "2", **threads},
        ),
        config(
            "threadmill",
            "--workers 1 --prefetch-count 100; Redis appendfsync always",
            {"BENCH_PROCESSES": "1", "BENCH_PREFETCH": "100", "BENCH_AOF": "1"},
            tests="AB",
        ),
    ]
