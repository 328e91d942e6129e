"""The product as its operator runs it: commands and workers as processes, with an environment and a database of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from jobs.testing import wait_until
from tests.acceptance import warm

_LOG_TAIL = 4_000
_LOGS_MOST = 10
_PRINTED_MOST = 4 * 1024 * 1024
PATIENCE = 60.0
"""Seconds after which a test gives up on what should come soon."""


def await_true(
    condition: Callable[[], Any], what: str, *, evidence: Callable[[], str]
) -> Any:
    """The first true value of ``condition``; fails with the evidence where there is none."""
    try:
        return wait_until(condition, what, timeout=PATIENCE)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{evidence()}") from None


class Process:
    """A command that goes on running, with what it logged."""

    def __init__(
        self, arguments: Sequence[str], env: Mapping[str, str], log: Path
    ) -> None:
        self.log = log
        with log.open("wb") as output, Path(os.devnull).open() as nothing:
            self.popen = warm.start(
                arguments,
                env,
                stdin=nothing.fileno(),
                stdout=output.fileno(),
                stderr=output.fileno(),
            )

    @property
    def pid(self) -> int:
        return self.popen.pid

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        """The log records so far, those with this event name only."""
        records = []
        for line in self.text().splitlines():
            if line.startswith("{") and line.endswith("}"):
                record = json.loads(line)
                if name is None or record["event"] == name:
                    records.append(record)
        return records

    def await_event(self, name: str) -> dict[str, Any]:
        return self.await_events(name, 1)[0]

    def await_events(self, name: str, count: int) -> list[dict[str, Any]]:
        def enough() -> list[dict[str, Any]]:
            found = self.events(name)
            return found if len(found) >= count else []

        found: list[dict[str, Any]] = await_true(
            enough, f"{count} times {name} in the log", evidence=self.text
        )
        return found

    def send(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def wait(self) -> int:
        """Its exit status."""
        return self.popen.wait(PATIENCE)

    def kill(self) -> None:
        """End it at once, by SIGKILL."""
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait(PATIENCE)


@dataclass
class Product:
    """One installation: its database's URL, its directory, its environment."""

    url: str
    directory: Path
    settings: dict[str, str] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)

    def env(self, **settings: str) -> dict[str, str]:
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.acceptance.settings",
            "DATABASE_URL": self.url,
            "ACW_DATA_DIR": str(self.directory / "data"),
            "ACW_LOG_FORMAT": "json",
            **self.settings,
            **settings,
        }

    def manage(
        self, *arguments: str, status: int = 0, stdin: str = "", **settings: str
    ) -> str:
        """Run a command to its end; what it printed on stdout, with what it complained of where it is to fail."""
        with (
            tempfile.TemporaryFile("w+") as given,
            tempfile.TemporaryFile("w+") as printed,
            tempfile.TemporaryFile("w+") as complained,
        ):
            given.write(stdin)
            given.seek(0)
            command = warm.start(
                arguments,
                self.env(**settings),
                stdin=given.fileno(),
                stdout=printed.fileno(),
                stderr=complained.fileno(),
            )
            try:
                ended = command.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                command.kill()
                command.wait()
                raise
            said, wrong = (
                os.pread(file.fileno(), _PRINTED_MOST, 0).decode()
                for file in (printed, complained)
            )
        assert ended == status, f"{arguments}: {ended}\n{said}\n{wrong}"
        return said if status == 0 else said + wrong

    def start(self, *arguments: str, **settings: str) -> Process:
        """Start a command that goes on running."""
        log = self.directory / f"process-{len(self.processes)}.log"
        process = Process(arguments, self.env(**settings), log)
        self.processes.append(process)
        return process

    def worker(self, *arguments: str, **settings: str) -> Process:
        """Start ``runjobs`` and wait until it works."""
        process = self.start("runjobs", *arguments, **settings)
        process.await_event("jobs.listener.connected")
        return process

    def sql(self, query: str, *parameters: Any) -> list[Any]:
        """Run a statement as an operator would, and return its rows."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(query, parameters or None)
            return cursor.fetchall() if cursor.description is not None else []

    def await_sql(self, query: str, *parameters: Any) -> list[Any]:
        """The rows of the query, once there are any."""
        found: list[Any] = await_true(
            lambda: self.sql(query, *parameters), query, evidence=self.evidence
        )
        return found

    def evidence(self) -> str:
        """What helps to see why a test waits in vain."""
        jobs = self.sql(
            "SELECT type, status, attempts, last_error, count(*) FROM jobs GROUP BY 1, 2, 3, 4"
        )
        logs = [process.text()[-_LOG_TAIL:] for process in self.processes[-_LOGS_MOST:]]
        return "\n".join([repr(jobs), *logs])

    def add_admin(self, name: str) -> None:
        self.manage(
            "createsuperuser",
            "--noinput",
            DJANGO_SUPERUSER_USERNAME=name,
            DJANGO_SUPERUSER_PASSWORD="not-guessed-1",
            DJANGO_SUPERUSER_EMAIL=f"{name}@example.org",
        )

    def enqueue(self, type_name: str, payload: dict[str, Any]) -> str:
        """Enqueue a job as a Django process would, and return its id."""
        code = (
            "import json, sys; from jobs.enqueue import enqueue; "
            f"print(enqueue({type_name!r}, json.loads({json.dumps(payload)!r})).id)"
        )
        return self.manage("shell", "--no-imports", "-c", code).strip()

    def close(self) -> None:
        for process in self.processes:
            process.kill()
