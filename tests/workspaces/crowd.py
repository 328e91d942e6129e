"""Run as a module: has many acquire at once, in processes and threads, and prints what each came to, as JSON.

Arguments: how many processes, how many threads in each, and what each wants: ``one`` branch, ``any``, or one ``each``.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import django


def _acquire(what: str, number: int) -> list[str]:
    from django.db import connection

    from workspaces import clones, holds

    branch = {"one": "topic", "any": None, "each": f"topic-{number}"}[what]
    try:
        worktree = holds.acquire(
            clones.find("demo"), branch=branch, holder=f"agent{number}"
        )
    except Exception as error:
        return [type(error).__name__, str(error)]
    finally:
        connection.close()
    return ["", worktree.path]


def _main() -> None:
    processes, threads, what = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    django.setup()
    pipes = []
    for process in range(processes):
        reads, writes = os.pipe()
        pipes.append(reads)
        if not os.fork():
            numbers = range(process * threads, (process + 1) * threads)
            with ThreadPoolExecutor(threads) as pool:
                came_to = list(pool.map(lambda n: _acquire(what, n), numbers))
            with os.fdopen(writes, "w") as out:
                json.dump(came_to, out)
            os._exit(0)
        os.close(writes)
    came_to = []
    for reads in pipes:
        with os.fdopen(reads) as said:
            came_to += json.load(said)
        os.wait()
    json.dump(came_to, sys.stdout)


if __name__ == "__main__":
    _main()
