"""ACW. Usage: peer_acw.py setup | enqueue N | bulk N | latency N | worker

BENCH_CONCURRENCY is the number of threads, BENCH_DELETE=1 has rows deleted when their job
completes; what is set for ACW itself (JOBS_…, ACW_LOG_LEVEL) reaches it.
"""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path

import interpreters

THROWAWAY_KEY = base64.urlsafe_b64encode(b"encrypts nothing that is kept..!").decode()


def prepare() -> None:
    """Set what `acw.settings` asks for, and load Django."""
    # The periodic runners clean this folder: it must be one of the measurement's own.
    own = Path(os.environ["BENCH_METER_DIR"]) / "acw"
    os.environ.update(
        {
            "DJANGO_SETTINGS_MODULE": "acw_settings",
            "DATABASE_URL": os.environ["BENCH_DSN"],
            "ACW_ENV_FILE": "",
            "ACW_STATE_DIR": str(own / "state"),
            "ACW_DATA_DIR": str(own / "data"),
            "ACW_ENCRYPTION_KEYS": THROWAWAY_KEY,
            "SECRET_KEY": "signs-nothing-that-outlives-the-benchmark-0123456789-abcdef",
            "JOBS_WORKERS": os.environ.get("BENCH_CONCURRENCY", "2"),
        }
    )
    sys.path.append(str(interpreters.CHECKOUT))

    import django

    django.setup()


def main() -> None:
    interpreters.continue_with_project()
    prepare()

    import clientlib
    from django.core.management import call_command

    from jobs.enqueue import NewJob, enqueue, enqueue_many

    command, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    deleted = os.environ.get("BENCH_DELETE") == "1"
    name = "bench.noop_deleted" if deleted else "bench.noop"
    if command == "setup":
        call_command("migrate", verbosity=0)
    elif command == "worker":
        call_command("runjobs")
    else:
        clientlib.run_sync(
            command,
            count,
            lambda t: enqueue(name, {"t": t}),
            lambda k: enqueue_many([NewJob(type=name, payload={"t": 0})] * k),
        )


if __name__ == "__main__":
    main()
