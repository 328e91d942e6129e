"""Programs of the benchmark's own that run beside it: prepared first, then let go at one moment."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any

from acw.benchmark import gate
from acw.benchmark.errors import BenchmarkError
from acw.scratch.schema import MANAGE

PATIENCE = 600.0
"""Seconds after which a program is given up."""

_TAIL = 3_000


class Child:
    """``python -m MODULE ARGUMENTS``, from the block's start, when it is ready to go, to its end.

    It ends with this process, however that ends: its standard input is then closed.
    """

    def __init__(
        self, module: str, arguments: Sequence[object], env: Mapping[str, str]
    ) -> None:
        # A file: nobody reads it meanwhile, and a pipe that is full would stop the program.
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed at the end
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", module, *map(str, arguments)],
            cwd=MANAGE.parent,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            process_group=0,
        )
        self._timer = threading.Timer(PATIENCE, self._process.kill)
        self._timer.daemon = True
        self._timer.start()

    def __enter__(self) -> Child:
        try:
            self._expect(gate.READY)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._process.poll()

    def go(self) -> None:
        """Let it begin."""
        assert self._process.stdin is not None  # noqa: S101 - a pipe, see above
        self._process.stdin.write(f"{gate.GO}\n")
        self._process.stdin.flush()

    def result(self) -> dict[str, Any]:
        """What it reports when it is done; raises BenchmarkError with what it said where it failed."""
        facts: dict[str, Any] = json.loads(self._line())
        return facts

    def _expect(self, word: str) -> None:
        line = self._line()
        if line.strip() != word:
            raise BenchmarkError(f"{self._process.args!r} said {line!r}, not {word!r}")

    def _line(self) -> str:
        assert self._process.stdout is not None  # noqa: S101 - a pipe, see above
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._said.seek(0)
            raise BenchmarkError(
                f"{self._process.args!r} has ended with status {status}: {self._said.read()[-_TAIL:]}"
            )
        return line

    def _end(self) -> None:
        self._timer.cancel()
        self._process.kill()
        self._process.communicate()
        self._said.close()


@contextmanager
def together(children: Sequence[Child]) -> Iterator[Sequence[Child]]:
    """All of them ready."""
    with ExitStack() as stack:
        for child in children:
            stack.enter_context(child)
        yield children


def run(children: Sequence[Child]) -> list[dict[str, Any]]:
    """Let ready children go, and return what each reports."""
    for child in children:
        child.go()
    return [child.result() for child in children]
