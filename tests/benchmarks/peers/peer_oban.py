"""Oban for Python. Usage: peer_oban.py setup | enqueue N | bulk N | latency N | worker"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import interpreters

QUEUE = "default"


async def run(command: str, count: int) -> None:
    import clientlib
    import oban_jobs
    from oban import Oban
    from oban.schema import install
    from psycopg_pool import AsyncConnectionPool

    pool = AsyncConnectionPool(os.environ["BENCH_DSN"], min_size=1, open=False)
    async with pool:
        if command == "setup":
            await install(pool)
        elif command == "worker":
            stop = asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            limit = int(os.environ.get("BENCH_CONCURRENCY", "10"))
            async with Oban(pool=pool, queues={QUEUE: limit}):
                await stop.wait()
        else:
            async with Oban(pool=pool) as oban:

                async def many(k: int) -> None:
                    await oban.enqueue_many(
                        [oban_jobs.Noop.new({"t": 0}) for _ in range(k)]
                    )

                await clientlib.run_async(
                    command,
                    count,
                    lambda t: oban.enqueue(oban_jobs.Noop.new({"t": t})),
                    many,
                )


def main() -> None:
    interpreters.continue_with_newer()

    import uvloop

    command, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    # As its own command line does.
    uvloop.run(run(command, count))


if __name__ == "__main__":
    main()
