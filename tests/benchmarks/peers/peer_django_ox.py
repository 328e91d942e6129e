"""django-ox and its ox_worker. Usage: peer_django_ox.py setup | enqueue N | bulk N | latency N | worker"""

from __future__ import annotations

import os
import sys

import interpreters


def main() -> None:
    interpreters.continue_with_newer()
    os.environ |= {"DJANGO_SETTINGS_MODULE": "more_settings", "BENCH_PEER": "django-ox"}

    import clientlib
    import django
    from django.core.management import call_command

    django.setup()
    command, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if command == "setup":
        call_command("migrate", verbosity=0)
    elif command == "worker":
        call_command(
            "ox_worker",
            concurrency=int(os.environ.get("BENCH_CONCURRENCY", "1")),
            interval=float(os.environ.get("BENCH_POLL", "1")),
            verbosity=int(os.environ.get("BENCH_VERBOSITY", "1")),
        )
    else:
        from django_ox.bulk import enqueue_many
        from more_tasks import noop

        clientlib.run_sync(
            command,
            count,
            lambda t: noop.enqueue(t=t),
            lambda k: enqueue_many(noop, [((), {"t": 0})] * k),
        )


if __name__ == "__main__":
    main()
