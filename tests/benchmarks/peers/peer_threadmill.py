"""threadmill + Redis. Usage: peer_threadmill.py setup | enqueue N | latency N | worker

It has no bulk API.
"""

from __future__ import annotations

import os
import sys

import interpreters


def main() -> None:
    interpreters.continue_with_newest()
    os.environ["DJANGO_SETTINGS_MODULE"] = "threadmill_settings"

    import clientlib
    import django
    from django.core.management import call_command

    django.setup()
    command, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if command == "worker":
        options = [
            ("--workers", "BENCH_PROCESSES"),
            ("--threads", "BENCH_CONCURRENCY"),
            ("--prefetch-count", "BENCH_PREFETCH"),
        ]
        arguments = [
            text
            for option, variable in options
            if variable in os.environ
            for text in (option, os.environ[variable])
        ]
        call_command("threadmill", "worker", *arguments)
    elif command != "setup":
        from more_tasks import noop

        clientlib.run_sync(command, count, lambda t: noop.enqueue(t=t))


if __name__ == "__main__":
    main()
