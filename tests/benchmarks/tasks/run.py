"""Tasks whose deadlines fall in the same minute, driven by `runjobs`; beside the engine alone and the transitions alone."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

from acw.benchmark.drains import drain, warm_up
from acw.benchmark.scratch import Scratch, scratch_schema
from acw.benchmark.workers import Workers
from jobs.testing import wait_until
from jobs.wakeup import CHANNEL
from tests.benchmarks.tasks.inside import MIX

ROOT = Path(__file__).resolve().parents[3]
TASKS = 10_000
NOOPS = 20_000
PATIENCE = 900.0
_LOOK_EVERY = 0.25
_LEFT = """
SELECT count(*) FROM jobs WHERE type = ANY(%s) AND run_at <= now() AND status IN ('pending', 'running')
"""
_QUIET = {"JOBS_TASK_RECONCILE_ENABLED": "false", "JOBS_TASK_REPORT_ENABLED": "false"}


def main(tasks: int = TASKS, rounds: int = 1) -> None:
    """Measure and print, as JSON lines; ``rounds`` take turns, and their medians come last."""
    rates: dict[str, list[float]] = {}
    with scratch_schema() as scratch:
        warm_up(scratch, NOOPS)
        for _ in range(rounds):
            for processes in (1, 2):
                scratch.reset()
                name = f"{processes} process{'es' if processes > 1 else ''}"
                driven, cpu = _driven(scratch, tasks, processes)
                _say(f"driven by runjobs, {name}", driven, tasks, cpu)
                scratch.reset()
                alone = _alone(scratch, tasks, processes)
                _say(f"machine.apply alone, {name}", alone, tasks)
                scratch.reset()
                noops = drain(scratch, jobs=NOOPS, processes=processes).rate
                _say(f"no-op jobs, {name}", NOOPS / noops, NOOPS)
                for what, rate in (
                    ("driven", tasks / driven),
                    ("alone", tasks / alone),
                    ("no-op", noops),
                ):
                    rates.setdefault(f"{what}, {name}", []).append(rate)
        scratch.reset()
        _inside(scratch, "lay", len(MIX))
        counted = _inside(scratch, "count")
    for action, statements in counted.items():
        sys.stdout.write(f"{action}: {len(statements)} statements\n")
        sys.stdout.writelines(f"    {statement}\n" for statement in statements)
    for what, found in rates.items():
        sys.stdout.write(f"median {what}: {median(found):,.0f} a second\n")


def _driven(scratch: Scratch, tasks: int, processes: int) -> tuple[float, float]:
    """The seconds from the moment at which the workers may go until no deadline is left, and their processor time."""
    with (
        scratch.connect() as connection,
        Workers(scratch, processes=processes, threads=2, **_QUIET) as workers,
    ):
        workers.pause()
        _inside(scratch, "lay", tasks)
        scratch.settle()
        before = workers.cpu_seconds()
        connection.execute("SELECT pg_notify(%s, '')", [CHANNEL])
        began = time.monotonic()
        workers.resume()

        def through() -> bool:
            # Seldom, since the question is one that the server works for.
            threading.Event().wait(_LOOK_EVERY)
            workers.check()
            found = connection.execute(_LEFT, [list(MIX)]).fetchone()
            return found == (0,)

        wait_until(through, "all deadlines are through", timeout=PATIENCE)
        took = time.monotonic() - began
        used = workers.cpu_seconds() - before
    wrong = _inside(scratch, "check")
    assert not any(wrong.values()), wrong
    return took, used


def _alone(scratch: Scratch, tasks: int, processes: int) -> float:
    _inside(scratch, "lay", tasks)
    scratch.settle()
    started = [_start(scratch, "act", number, processes) for number in range(processes)]
    results = []
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in started:
        output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        results.append(json.loads(output.splitlines()[-1]))
    ended = max(result["ended"] for result in results)
    return float(ended - min(result["began"] for result in results))


def _inside(scratch: Scratch, verb: str, *numbers: int) -> Any:
    process = _start(scratch, verb, *numbers)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    return json.loads(output.splitlines()[-1])


def _start(scratch: Scratch, verb: str, *numbers: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.tasks.inside", verb]
        + [str(number) for number in numbers],
        cwd=ROOT,
        env=scratch.env(ACW_LOG_LEVEL="warning"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _say(what: str, seconds: float, count: int, cpu: float | None = None) -> None:
    used = f", {cpu:.1f} s of processor time" if cpu is not None else ""
    sys.stdout.write(
        f"{what}: {count:,} in {seconds:.1f} s, {count / seconds:,.0f} a second{used}\n"
    )
    sys.stdout.flush()
