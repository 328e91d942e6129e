"""steady-queue. Usage: peer_steady_queue.py setup | enqueue N | latency N | worker

It has no bulk API. The `worker` is its supervisor with as many worker processes as
BENCH_PROCESSES says, a dispatcher and a scheduler, each a process.
"""

from __future__ import annotations

import os
import sys

import interpreters


def main() -> None:
    interpreters.continue_with_newer()
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "more_settings",
        "BENCH_PEER": "steady-queue",
    }

    import clientlib
    import django
    from django.core.management import call_command

    django.setup()
    command, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if command == "setup":
        call_command("migrate", verbosity=0)
    elif command == "worker":
        call_command("steady_queue")
    else:
        from more_tasks import noop

        clientlib.run_sync(command, count, lambda t: noop.enqueue(t=t))


if __name__ == "__main__":
    main()
