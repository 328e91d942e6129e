from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from acw.torture import fleet as fleet_module
from acw.torture.errors import TortureError
from acw.torture.fleet import Fleet
from acw.torture.job_types import EXIT_STATUS
from acw.torture.run import Plan
from acw.torture.scratch import Scratch
from jobs.testing import wait_until

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 60.0
STARTED = "jobs.module.started"


def program(*lines: str) -> list[str]:
    return [sys.executable, "-c", "\n".join(lines)]


def idle(fleet: Fleet) -> None:
    """Its processes do nothing, in the place of a worker."""
    fleet._command = program(
        "import threading",
        f"print({STARTED!r}, flush=True)",
        "threading.Event().wait()",
    )


def replaced(fleet: Fleet) -> bool:
    fleet.tend()
    return fleet.started >= 2


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def ended(fleet: Fleet, connection: psycopg.Connection) -> list[tuple[int, bool]]:
    fleet.note(connection)
    return connection.execute(
        "SELECT status, expected FROM torture_processes ORDER BY started_at, pid"
    ).fetchall()


def test_real_workers_come_up_under_a_name_of_their_own_and_stop_cleanly(
    scratch: Scratch, connection: psycopg.Connection
):
    settings = Plan(seed=1).settings
    with Fleet(scratch, workers=1, threads=1, settings=settings) as fleet:
        fleet.await_up()
        (worker,) = fleet.at_work()
        named = wait_until(
            lambda: connection.execute("SELECT pid, name FROM job_workers").fetchall(),
            "announced",
            timeout=PATIENCE,
        )
        assert named[0][0] == worker.process.pid
        assert named[0][1].startswith(f"torture:{worker.process.pid}:")
        sessions = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s",
            [scratch.worker_sessions],
        ).fetchone()
        assert sessions is not None
        assert sessions[0] >= 3
        fleet.stop_all()
        assert ended(fleet, connection) == [(0, True)]


def test_one_that_ended_by_itself_is_replaced_and_told(
    scratch: Scratch, connection: psycopg.Connection
):
    with Fleet(scratch, workers=1, threads=1, settings={}) as fleet:
        fleet._command = program("import sys", "sys.exit(1)")
        fleet.tend()
        wait_until(lambda: replaced(fleet), "replaced")
        assert ended(fleet, connection)[0] == (1, False)


def test_that_a_handler_ends_its_process_is_expected(
    scratch: Scratch, connection: psycopg.Connection
):
    with Fleet(scratch, workers=1, threads=1, settings={}) as fleet:
        fleet._command = program("import sys", f"sys.exit({EXIT_STATUS})")
        fleet.tend()
        wait_until(lambda: replaced(fleet), "replaced")
        assert ended(fleet, connection)[0] == (EXIT_STATUS, True)


def test_workers_that_cannot_start_are_told_with_their_log(scratch: Scratch):
    with Fleet(scratch, workers=1, threads=1, settings={}) as fleet:
        fleet._command = program("raise SystemExit('no such setting')")

        def tend() -> bool:
            fleet.tend()
            return False

        with pytest.raises(TortureError, match=r"in a row.*status 1.*no such setting"):
            wait_until(tend, "given up")


def test_workers_that_do_not_come_up_are_told_with_their_log(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fleet_module, "UP_WITHIN", 0.5)
    with Fleet(scratch, workers=1, threads=1, settings={}) as fleet:
        fleet._command = program(
            "import threading",
            "print('thinks', flush=True)",
            "threading.Event().wait()",
        )
        with pytest.raises(TortureError, match=r"not up after 0\.5 s"):
            fleet.await_up()


def test_what_is_leaving_gets_no_second_signal(
    scratch: Scratch, connection: psycopg.Connection
):
    """The second would end a worker at once."""
    with Fleet(scratch, workers=1, threads=1, settings={}) as fleet:
        fleet._command = program(
            "import signal, threading",
            "told = []",
            "def note(*_):",
            "    told.append(1)",
            "    print('told', len(told), flush=True)",
            "signal.signal(signal.SIGTERM, note)",
            f"print({STARTED!r}, flush=True)",
            "while not told: signal.pause()",
            "signal.sigtimedwait([signal.SIGTERM], 0.3)",
            "raise SystemExit(0 if len(told) == 1 else 143)",
        )
        fleet.await_up()
        (worker,) = fleet.at_work()
        fleet.stop(worker)
        fleet.stop_all()
        assert ended(fleet, connection) == [(0, True)]
        assert "told 2" not in worker.log.read_text()


def test_one_that_does_not_end_when_told_is_ended_and_told(
    scratch: Scratch,
    connection: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(fleet_module, "STOPPED_WITHIN", 0.3)
    with Fleet(scratch, workers=1, threads=1, settings={}) as fleet:
        fleet._command = program(
            "import signal, threading",
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
            f"print({STARTED!r}, flush=True)",
            "threading.Event().wait()",
        )
        fleet.await_up()
        fleet.stop_all()
        assert ended(fleet, connection) == [(-signal.SIGKILL, False)]


def test_all_end_with_the_block_also_those_that_are_suspended(scratch: Scratch):
    with Fleet(scratch, workers=2, threads=1, settings={}) as fleet:
        idle(fleet)
        fleet.await_up()
        pids = [worker.process.pid for worker in fleet.at_work()]
        fleet.suspend(fleet.at_work()[0], 60)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


ALONE = """
import sys
import django
django.setup()
from acw.torture.fleet import Fleet
from acw.torture.run import Plan
from acw.torture.scratch import Scratch
from pathlib import Path
scratch = Scratch(sys.argv[1], Path(sys.argv[2]))
fleet = Fleet(scratch, workers=2, threads=1, settings=Plan(seed=1).settings)
fleet.await_up()
pids = [worker.process.pid for worker in fleet.at_work()]
fleet.suspend(fleet.at_work()[0], 600)
print(*pids, flush=True)
sys.stdin.read()
"""


def test_they_do_not_outlive_a_run_that_is_killed_also_while_suspended(
    scratch: Scratch,
):
    """Who is suspended can't see the end of its standard input: the system's hangup ends it."""
    run = subprocess.Popen(
        [sys.executable, "-c", ALONE, scratch.schema, str(scratch.directory)],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": scratch.env()["DATABASE_URL"]},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with run:
        assert run.stdout is not None
        pids = [int(pid) for pid in run.stdout.readline().split()]
        assert len(pids) == 2
        run.kill()
    try:
        wait_until(lambda: all(map(gone, pids)), "gone", timeout=PATIENCE)
    finally:
        for pid in itertools.filterfalse(gone, pids):
            os.kill(pid, signal.SIGKILL)
