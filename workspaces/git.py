"""Running git: the only module of this app that starts a process.

Commands are argument lists. Nothing of the server's environment reaches git but what is named in
``_PASSED_ON``: no ``GIT_*``, no agents' helpers, no prompts, no terminal. What a repository's own
configuration could make git execute is overridden, except filters, which have to be named: see
:func:`workspaces.repository.Repository.run`. Callers put ``--`` before anything that a user named.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from jobs.redaction import redact
from workspaces.exceptions import (
    GitError,
    GitFailed,
    GitMissing,
    GitOutputTooLarge,
    GitStopped,
    GitTimeout,
)
from workspaces.supervision import STDOUT_MOST, Captured, Ending, supervise

OLDEST_VERSION = (2, 31)
"""The first that takes configuration from the environment (``GIT_CONFIG_COUNT``)."""

# An operator's, and needed to reach remotes; an agent cannot change the server's environment.
_PASSED_ON = (
    "PATH",
    "SSH_AUTH_SOCK",
    *(f"{name}_PROXY" for name in ("HTTP", "HTTPS", "ALL", "NO")),
    *(f"{name}_proxy" for name in ("http", "https", "all", "no")),
)
_SSH = (
    "ssh -oBatchMode=yes -oStrictHostKeyChecking=yes -oConnectTimeout=15"
    " -oServerAliveInterval=15 -oServerAliveCountMax=2"
)
_ENVIRONMENT = {
    # No directory: nothing of the service account's own (.netrc, .gitconfig) is read.
    "HOME": os.devnull,
    "XDG_CONFIG_HOME": os.devnull,
    # LANGUAGE beats LC_ALL where it is set.
    "LC_ALL": "C",
    "LANGUAGE": "C",
    "TZ": "UTC",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    # Answers every question for a credential with nothing, so that it fails at once.
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "SSH_ASKPASS_REQUIRE": "force",
    "GIT_SSH_COMMAND": _SSH,
    "GIT_SSH_VARIANT": "ssh",
    "GIT_OPTIONAL_LOCKS": "0",
    # Beats core.gitProxy, a command.
    "GIT_PROXY_COMMAND": "",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_NO_LAZY_FETCH": "1",
}
_CONFIGURATION = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.alternateRefsCommand": "true",
    "core.quotePath": "false",
    "credential.helper": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "commit.gpgSign": "false",
    "log.showSignature": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "protocol.ext.allow": "never",
    "http.sslVerify": "true",
    "http.saveCookies": "false",
    # Below 1,000 bytes a second for 30 seconds, a transfer has died.
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
    "advice.detachedHead": "false",
    "init.defaultBranch": "main",
}
# Also the marks that turn the direction of writing round.
_CONTROL = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_REAP_WAIT = 5.0


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
    work_tree: Path | None = None,
    config: Mapping[str, str] | None = None,
    timeout: dt.timedelta | None = None,
    stop: Callable[[], bool] | None = None,
    accept: Collection[int] = (0,),
    most: int = STDOUT_MOST,
) -> Result:
    """Run ``git *arguments`` and return what it wrote; ``arguments[0]`` is the subcommand.

    It runs in ``cwd`` (default: the root directory), on the repository ``git_dir`` with the files in
    ``work_tree``, or on the one that ``cwd`` is in. ``config`` adds configuration for this command.
    It may take ``timeout``, at most and by default ``ACW_GIT_TIMEOUT``; ``stop`` is asked several
    times a second whether to end early. Exit statuses in ``accept`` are no error. ``most`` bytes of
    its standard output are read.

    Raises :class:`~workspaces.exceptions.GitFailed`, ``GitTimeout``, ``GitStopped``,
    ``GitOutputTooLarge`` or ``GitMissing``. However it ends, no process of its group is left.
    """
    verb = arguments[0]
    limit = settings.ACW_GIT_TIMEOUT
    timeout = limit if timeout is None else min(timeout, limit)
    command = [*_location(git_dir, work_tree), *arguments]
    directories = [path for path in (cwd, git_dir, work_tree) if path is not None]
    environment = _environment(directories, config or {})
    # A quick one would have ended before anybody asked. Where no time is left, that is what is told.
    if timeout and stop is not None and stop():
        raise GitStopped(verb, "was not begun, since the caller stops")
    process = _start(verb, command, cwd=cwd, environment=environment)
    captured = _watch(process, timeout=timeout, stop=stop, most=most)
    stderr = _presentable(captured.stderr)
    match captured.ending:
        case Ending.TIMEOUT:
            of = " (ACW_GIT_TIMEOUT)" if timeout == limit else ""
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


def _start(
    verb: str,
    command: Sequence[str],
    *,
    cwd: Path | None,
    environment: Mapping[str, str],
) -> subprocess.Popen[bytes]:
    program = shutil.which("git")
    if program is None:
        raise GitMissing(verb, "cannot run: there is no git in PATH; install it")
    try:
        return subprocess.Popen(  # noqa: S603 (an argument list, no shell)
            [program, *command],
            cwd=cwd or "/",
            env=environment,
            stdin=subprocess.DEVNULL,
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
    timeout: dt.timedelta,
    stop: Callable[[], bool] | None,
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
                exited=lambda: _has_exited(process),
                timeout=timeout.total_seconds(),
                stop=stop,
                most=most,
            )
        finally:
            # One that not even SIGKILL ends hangs in the kernel, on a disk or network mount that is gone.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_REAP_WAIT)


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended; it is not reaped, so that its number stays its own."""
    if hasattr(os, "waitid"):  # macOS has it from Python 3.13 on
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, process.pid, flags) is not None
    return process.poll() is not None


def _environment(
    directories: Sequence[Path], config: Mapping[str, str]
) -> dict[str, str]:
    """The whole environment of git; configuration goes this way, since any key can."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= _ENVIRONMENT
    environment["GIT_ALLOW_PROTOCOL"] = ":".join(settings.ACW_GIT_PROTOCOLS)
    # Exactly these directories may belong to another user, never all ("*").
    pairs = [
        *config.items(),
        *(("safe.directory", str(directory)) for directory in directories),
    ]
    environment |= _as_environment(pairs, begin=len(_CONFIGURATION))
    environment["GIT_CONFIG_COUNT"] = str(len(_CONFIGURATION) + len(pairs))
    return environment


def _as_environment(
    pairs: Iterable[tuple[str, str]], *, begin: int = 0
) -> dict[str, str]:
    """Configuration as git takes it from its environment, numbered from ``begin``."""
    numbered = {}
    for n, (key, value) in enumerate(pairs, begin):
        numbered[f"GIT_CONFIG_KEY_{n}"] = key
        numbered[f"GIT_CONFIG_VALUE_{n}"] = value
    return numbered


_ENVIRONMENT |= _as_environment(_CONFIGURATION.items())


def _presentable(stderr: bytes) -> str:
    text = stderr.decode(errors="replace").replace("\r", "\n")
    return redact(_CONTROL.sub(" ", text))
