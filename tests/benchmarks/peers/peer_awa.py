"""awa-pg. Usage: peer_awa.py setup | enqueue N | bulk N | latency N | worker"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import dataclass

import interpreters

QUEUE = "bench"


def url() -> str:
    """The database's URL with a host in it: its driver takes none without, even where `host=` follows."""
    return os.environ["BENCH_DSN"].replace("@/", "@localhost/", 1)


@dataclass
class Noop:
    t: float


async def split_queue(shards: int) -> None:
    """Give the queue several heads, as its documentation does for hot ones: FIFO in each, not across them."""
    import psycopg

    async with await psycopg.AsyncConnection.connect(os.environ["BENCH_DSN"]) as db:
        await db.execute(
            "INSERT INTO awa.queue_meta (queue, enqueue_shards) VALUES (%s, %s)"
            " ON CONFLICT (queue) DO UPDATE SET enqueue_shards = excluded.enqueue_shards",
            [QUEUE, shards],
        )


async def work() -> None:
    import meter
    from awa import AsyncClient

    client = AsyncClient(
        url(),
        max_connections=int(os.environ.get("BENCH_CONNECTIONS", "10")),
    )

    @client.task(Noop, queue=QUEUE)
    async def noop(job) -> None:
        meter.hit(job.args.t)

    queue = {
        "name": QUEUE,
        "max_workers": int(os.environ.get("BENCH_CONCURRENCY", "50")),
    }
    for option, variable in (
        ("claimers", "BENCH_CLAIMERS"),
        ("claim_batch_size", "BENCH_BATCH"),
    ):
        if variable in os.environ:
            queue[option] = int(os.environ[variable])
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await client.start([queue])
    await stop.wait()
    await client.shutdown()


async def produce(command: str, count: int) -> None:
    import clientlib
    from awa import AsyncClient

    client = AsyncClient(url())
    if command == "setup":
        await client.migrate()
        # What the first worker of a new installation does; the client comes before it here.
        await client.install_queue_storage()
        if shards := os.environ.get("BENCH_SHARDS"):
            await split_queue(int(shards))
        return
    await clientlib.run_async(
        command,
        count,
        lambda t: client.insert(Noop(t=t), queue=QUEUE),
        lambda k: client.enqueue_many_copy([Noop(t=0)] * k, queue=QUEUE),
    )


def main() -> None:
    interpreters.continue_with_newer()
    command, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    asyncio.run(work() if command == "worker" else produce(command, count))


if __name__ == "__main__":
    main()
