"""Running git: the only module of this app that starts a process.

Commands are argument lists. Nothing of the server's environment reaches git but what
:mod:`workspaces.plumbing.git_environment` names: no ``GIT_*``, no agents' helpers, no prompts, no terminal. What a repository's
own configuration could make git execute is overridden, except filters, which have to be named: what reads or writes files
goes through :mod:`workspaces.plumbing.view`. Callers put ``--`` before anything that a user named, and parse what is
printed as bytes that NUL ends.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.conf import settings

from workspaces.exceptions import (
    GitError,
    GitFailed,
    GitMissing,
    GitOutputTooLarge,
    GitStopped,
    GitTimeout,
)
from workspaces.plumbing import git_environment, presentable
from workspaces.plumbing.progress import Progress
from workspaces.plumbing.supervision import STDOUT_MOST, Captured, Ending, supervise

OLDEST_VERSION = (2, 31)
"""The first that takes configuration from the environment (``GIT_CONFIG_COUNT``)."""

LONGEST = {
    "ls-remote": dt.timedelta(seconds=30),
    "status": dt.timedelta(seconds=20),
    "worktree": dt.timedelta(seconds=60),
}
"""What commands may take that are quick unless something is wrong, where that is less than ``ACW_GIT_TIMEOUT``."""

_REAP_WAIT = 5.0
# What surely fits into a pipe that nobody reads from yet.
_PIPE_MOST = 4096
_programs: dict[str, str | None] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What a git command wrote; ``stderr`` bounded, without control characters and credentials."""

    stdout: bytes
    stderr: str
    status: int


def run(
    arguments: Sequence[str],
    *,
    cwd: Path | None = None,
    git_dir: Path | None = None,
    common: Path | None = None,
    work_tree: Path | None = None,
    objects: Path | None = None,
    config: Mapping[str, str] | None = None,
    protocols: Sequence[str] | None = None,
    configured: bool = False,
    stdin: bytes | Path | None = None,
    largest_file: int | None = None,
    timeout: dt.timedelta | None = None,
    longest: dt.timedelta | None = None,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[str], None] | None = None,
    accept: Collection[int] = (0,),
    most: int = STDOUT_MOST,
) -> Result:
    """Run ``git *arguments`` and return what it wrote; ``arguments[0]`` is the subcommand.

    It runs in ``cwd`` (default: the root directory), on the repository ``git_dir`` with the files in
    ``work_tree``, or on the one that ``cwd`` is in. ``common`` is the repository that the worktree ``git_dir`` is of, instead of
    the one that it names. ``objects`` is where its objects are instead of the repository's
    own place. ``config`` adds configuration for this command; ``protocols`` take the place of ``ACW_GIT_PROTOCOLS``.
    ``configured`` says that the repository is ours and has our configuration in its own.
    ``stdin`` is what it reads, or the file with it; without, there is nothing to read. No file that it writes may exceed
    ``largest_file`` bytes: from its first one on where it reads a short ``stdin`` before it writes, and on Linux only.

    It may take ``timeout``, at most and by default ``longest``, which is ``ACW_GIT_TIMEOUT`` or what :data:`LONGEST` has
    for the subcommand; ``stop`` is asked several times a second whether to end early. ``progress`` is told the newest of
    the lines that it writes on stderr, now and then. Exit statuses in ``accept`` are no error. ``most`` bytes of its
    standard output are read.

    Raises :class:`~workspaces.exceptions.GitFailed`, ``GitTimeout``, ``GitStopped``,
    ``GitOutputTooLarge`` or ``GitMissing``. However it ends, no process of its group is left.
    """
    verb = arguments[0]
    limit = settings.ACW_GIT_TIMEOUT if longest is None else longest
    quick = min(limit, LONGEST.get(verb, limit))
    timeout = quick if timeout is None else min(timeout, quick)
    command = [*_location(git_dir, work_tree), *arguments]
    directories = [path for path in (cwd, git_dir, work_tree) if path is not None]
    environment = git_environment.build(
        directories,
        config=config or {},
        common=common,
        objects=objects,
        protocols=protocols,
        configured=configured,
    )
    # A quick one would have ended before anybody asked. Where no time is left, that is what is told.
    if timeout and stop is not None and stop():
        raise GitStopped(verb, "was not begun, since the caller stops")
    with _given(verb, stdin) as (given, written):
        process = _start(verb, command, cwd=cwd, environment=environment, stdin=given)
    captured = _watch(
        process,
        written=written,
        largest_file=largest_file,
        timeout=timeout,
        stop=stop,
        progress=progress,
        most=most,
    )
    stderr = presentable.stderr(captured.stderr, secrets=git_environment.secrets())
    match captured.ending:
        case Ending.TIMEOUT:
            of = " (ACW_GIT_TIMEOUT)" if timeout == settings.ACW_GIT_TIMEOUT else ""
            said = f"took longer than {timeout}{of} and was ended"
            raise GitTimeout(verb, said, stderr=stderr)
        case Ending.STOPPED:
            raise GitStopped(verb, "was ended because the caller stops")
        case Ending.OVERFLOW:
            raise GitOutputTooLarge(verb, f"wrote more than {most} bytes and was ended")
    if process.returncode not in accept:
        raise GitFailed(verb, process.returncode, stderr=stderr)
    return Result(stdout=captured.stdout, stderr=stderr, status=process.returncode)


def version() -> tuple[int, int]:
    """Git's version as (major, minor); raises :class:`~workspaces.exceptions.GitError`."""
    said = run(["version"]).stdout.decode(errors="replace")
    match = re.search(r"(\d{1,9})\.(\d{1,9})", said)
    if match is None:
        raise GitError("version", f"says {said[:100]!r}, which has no version in it")
    return int(match[1]), int(match[2])


def _location(git_dir: Path | None, work_tree: Path | None) -> list[str]:
    options = {"--git-dir": git_dir, "--work-tree": work_tree}
    return [f"{option}={path}" for option, path in options.items() if path is not None]


@contextlib.contextmanager
def _given(
    verb: str, stdin: bytes | Path | None
) -> Iterator[tuple[int | IO[bytes], bytes]]:
    """What the process gets as its standard input, and what is still to be written there once it runs."""
    if stdin is None:
        yield subprocess.DEVNULL, b""
    elif isinstance(stdin, Path):
        try:
            opened = stdin.open("rb")
        except OSError as error:
            raise GitError(verb, f"cannot run: {error}") from None
        with opened:
            yield opened, b""
    elif len(stdin) <= _PIPE_MOST:
        yield subprocess.PIPE, stdin
    else:
        # A file is never waited for, whoever reads how much of it.
        with tempfile.TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            yield file, b""


def _program(path: str) -> str | None:
    """Where git is, as found once: to look through all directories takes longer than the rest of a start."""
    known = _programs.get(path)
    if known is None or not os.access(known, os.X_OK):
        known = _programs[path] = shutil.which("git", path=path)
    return known


def _start(
    verb: str,
    command: Sequence[str],
    *,
    cwd: Path | None,
    environment: Mapping[str, str],
    stdin: int | IO[bytes],
) -> subprocess.Popen[bytes]:
    program = _program(os.environ.get("PATH", os.defpath))
    if program is None:
        raise GitMissing(verb, "cannot run: there is no git in PATH; install it")
    try:
        return subprocess.Popen(  # noqa: S603 (an argument list, no shell)
            [program, *command],
            cwd=cwd or "/",
            env=environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A session of its own: a group to end as a whole, and no terminal to ask on.
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise GitError(verb, f"cannot run: {error}") from None


def _watch(
    process: subprocess.Popen[bytes],
    *,
    written: bytes,
    largest_file: int | None,
    timeout: dt.timedelta,
    stop: Callable[[], bool] | None,
    progress: Callable[[str], None] | None,
    most: int,
) -> Captured:
    assert process.stdout is not None  # noqa: S101 (both were opened as pipes)
    assert process.stderr is not None  # noqa: S101
    with process.stdout, process.stderr:
        try:
            return supervise(
                group=process.pid,
                stdout=process.stdout.fileno(),
                stderr=process.stderr.fileno(),
                begin=lambda: _let_begin(process, written, largest_file),
                exited=lambda: _has_exited(process),
                timeout=timeout.total_seconds(),
                stop=stop,
                most=most,
                heard=None if progress is None else Progress(progress),
            )
        finally:
            # One that not even SIGKILL ends hangs in the kernel, on a disk or network mount that is gone.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_REAP_WAIT)


def _let_begin(
    process: subprocess.Popen[bytes], written: bytes, largest_file: int | None
) -> None:
    # Set from here: code between fork and exec is not safe where there are threads, and a program that sets it costs as much
    # as git itself. What git starts has the limit too, since it waits for its input before it starts anything.
    if largest_file is not None and hasattr(resource, "prlimit"):
        with contextlib.suppress(ProcessLookupError):
            limits = (largest_file, largest_file)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)
    if process.stdin is not None:
        # One that has ended already has said why.
        with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
            stdin.write(written)


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended; it is not reaped, so that its number stays its own."""
    if hasattr(os, "waitid"):  # macOS has it from Python 3.13 on
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, process.pid, flags) is not None
    return process.poll() is not None
