"""Putting jobs into the queue: one by one, in bulk, and from many clients at once."""

from __future__ import annotations

from acw.benchmark import children
from acw.benchmark.children import Child
from acw.benchmark.clients import BULK
from acw.benchmark.errors import CountError
from acw.benchmark.figures import Figure, of_rounds
from acw.benchmark.job_types import NOOP
from acw.benchmark.scratch import Scratch
from acw.benchmark.workers import Workers

SINGLE = 3_000
CALLS = 40
CLIENTS = 32
PER_CLIENT = 250
_CLIENT_PROCESSES = 4
_SHORT = 10
"""How many times less is enqueued for a short run."""

# A worker that hears every notification and serves a queue in which nothing comes.
_ELSEWHERE = "bench-elsewhere"
_WAITING = "SELECT count(*) FROM jobs WHERE type = %s AND status = 'pending'"


def measure_single(scratch: Scratch, *, rounds: int, short: bool) -> list[Figure]:
    """`enqueue`, one by one in autocommit, beside a bare INSERT of the same row."""
    count = SINGLE // _SHORT if short else SINGLE
    floors, rates = [], []
    for _ in range(rounds):
        floors.append(_add(scratch, "insert", count=count))
        rates.append(_add(scratch, "enqueue", count=count))
    return [
        of_rounds(
            "enqueue, one by one",
            rates,
            unit="jobs/s",
            ceilings=floors,
            against="bare INSERT in autocommit",
            goal="≥ 0.7",
        )
    ]


def measure_bulk(scratch: Scratch, *, rounds: int, short: bool) -> list[Figure]:
    """`enqueue_many`, beside a bare INSERT from `unnest` of as many rows a statement."""
    count = BULK * (CALLS // _SHORT if short else CALLS)
    floors, rates = [], []
    for _ in range(rounds):
        floors.append(_add(scratch, "unnest", count=count))
        rates.append(_add(scratch, "enqueue_many", count=count))
    return [
        of_rounds(
            f"enqueue, {BULK:,} a call",
            rates,
            unit="jobs/s",
            ceilings=floors,
            against="bare INSERT from unnest",
            goal="≥ 0.8",
        )
    ]


def measure_clients(scratch: Scratch, *, rounds: int, short: bool) -> list[Figure]:
    """`enqueue` from 32 connections at once with notifications, beside the same without; a worker listens."""
    count = PER_CLIENT // _SHORT if short else PER_CLIENT
    threads = CLIENTS // _CLIENT_PROCESSES
    quiet: list[float] = []
    rates: list[float] = []
    for _ in range(rounds):
        for taken, wake in ((quiet, False), (rates, True)):
            scratch.clear()
            with Workers(scratch, queues=_ELSEWHERE):
                taken.append(
                    _add_at_once(
                        scratch,
                        "enqueue",
                        count=count,
                        processes=_CLIENT_PROCESSES,
                        threads=threads,
                        wake=wake,
                    )
                )
    return [
        of_rounds(
            f"enqueue, {CLIENTS} clients, notifications on",
            rates,
            unit="jobs/s",
            ceilings=quiet,
            against="notifications off",
            goal="≥ 0.9",
        )
    ]


def _add(scratch: Scratch, kind: str, *, count: int) -> float:
    """Jobs a second of one client alone."""
    scratch.clear()
    return _add_at_once(scratch, kind, count=count, processes=1, threads=1, wake=True)


def _add_at_once(
    scratch: Scratch,
    kind: str,
    *,
    count: int,
    processes: int,
    threads: int,
    wake: bool,
) -> float:
    """Jobs a second of so many clients, each of which adds ``count``; raises CountError unless all are there."""
    arguments = [kind, threads, count, "wake" if wake else "quiet"]
    clients = [
        Child("acw.benchmark.clients", arguments, scratch.env())
        for _ in range(processes)
    ]
    with scratch.connect() as connection, children.together(clients):
        scratch.settle()
        results = children.run(clients)
        row = connection.execute(_WAITING, [NOOP]).fetchone()
    wanted = count * processes * threads
    found = row[0] if row else 0
    if found != wanted:
        raise CountError(
            f"{wanted:,} jobs were enqueued and {found:,} are in the table: no figure"
        )
    began = min(result["began"] for result in results)
    ended = max(result["ended"] for result in results)
    return float(wanted / (ended - began))
