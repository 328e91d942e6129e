"""Fetches of many small clones by one worker, beside a plain `git fetch` of each.

The remote is a repository on this machine, which gets a new commit before each measurement: every fetch has
something to bring, and what it brought is looked for afterwards. What the product does beside `git fetch`
(its look at the clone's configuration, at the branches before and after, the rows) is in the ratio. The
floor has as many threads as the worker.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from acw.benchmark import children, real_jobs, rows
from acw.benchmark.children import Child
from acw.benchmark.errors import BenchmarkError, CountError
from acw.benchmark.figures import Figure, of_rounds
from acw.benchmark.scratch import Scratch
from acw.benchmark.workers import Workers
from acw.scratch.schema import MANAGE
from workspaces.job_types import FETCH

JOBS, JOBS_SHORT = 500, 20
THREADS = 4

_PROTOCOLS = "file"
_FIRST = "benchmark-0"
_FETCHED = Path("refs/remotes/origin/main")
_GIT_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Benchmark"), ("EMAIL", "bench@example.com"))
    },
}

_PATH_OF_FIRST = "SELECT path FROM workspaces WHERE name = %s"
_ADD_COPIES = """
INSERT INTO workspaces (name, url, host, path, default_branch, last_fetched_at)
SELECT copy.name, url, host, copy.path, default_branch, now()
FROM workspaces CROSS JOIN unnest(%s::text[], %s::text[]) AS copy (name, path)
WHERE workspaces.name = %s
"""
_IDS = "SELECT id FROM workspaces ORDER BY id"


@dataclass(frozen=True, kw_only=True)
class Remote:
    """A bare repository with one branch."""

    path: Path

    @property
    def url(self) -> str:
        return self.path.as_uri()

    def create(self) -> None:
        """Make it, with one commit."""
        self._git("init", "--quiet", "--bare", "--initial-branch=main")
        self.commit("first")

    def commit(self, text: str) -> str:
        """Put a commit with another file on ``main``, and return its hash."""
        blob = self._git("hash-object", "-w", "--stdin", stdin=text)
        tree = self._git("mktree", stdin=f"100644 blob {blob}\tfile\n")
        parent = self._git("for-each-ref", "--format=%(objectname)", "refs/heads/main")
        parents = ["-p", parent] if parent else []
        commit = self._git("commit-tree", tree, *parents, "-m", text)
        self._git("update-ref", "refs/heads/main", commit)
        return commit

    def _git(self, *arguments: str, stdin: str = "") -> str:
        command = ["git", f"--git-dir={self.path}", *arguments]
        return _run(command, env=_GIT_ENVIRONMENT, stdin=stdin)


def measure(scratch: Scratch, *, rounds: int, short: bool) -> list[Figure]:
    """Fetches a second."""
    count = JOBS_SHORT if short else JOBS
    remote = Remote(path=scratch.directory / "remote.git")
    remote.create()
    clones = make_clones(scratch, remote, count)
    plain, queue = [], []
    for number in range(rounds):
        wanted = remote.commit(f"for the plain fetches of round {number}")
        plain.append(count / _plain(scratch, remote, clones))
        check(clones, wanted)
        wanted = remote.commit(f"for the jobs of round {number}")
        queue.append(count / _by_queue(scratch, count))
        check(clones, wanted)
    return [
        of_rounds(
            f"fetches of local repositories, {THREADS} threads",
            queue,
            unit="jobs/s",
            ceilings=plain,
            against="a plain git fetch of each, as many threads",
            goal="≥ 0.8",
        )
    ]


def make_clones(scratch: Scratch, remote: Remote, count: int) -> list[Path]:
    """The clones of ``count`` workspaces: one added as an operator adds it, the others copies of it with their rows."""
    _run(
        [sys.executable, str(MANAGE), "workspace", "add", _FIRST, remote.url],
        env=scratch.env(ACW_GIT_PROTOCOLS=_PROTOCOLS),
    )
    with scratch.connect() as connection:
        row = connection.execute(_PATH_OF_FIRST, [_FIRST]).fetchone()
        if row is None:
            raise BenchmarkError(f"the workspace {_FIRST} was added and has no row")
        first = Path(row[0])
        names = [f"benchmark-{number}" for number in range(1, count)]
        copies = [first.parents[1] / name / first.name for name in names]
        for copy in copies:
            shutil.copytree(first.parent, copy.parent)
        connection.execute(_ADD_COPIES, [names, list(map(str, copies)), _FIRST])
    return [first, *copies]


def _plain(scratch: Scratch, remote: Remote, clones: Sequence[Path]) -> float:
    """Seconds."""
    arguments = [remote.url, THREADS, clones[0].parents[1]]
    with Child("acw.benchmark.plain_fetches", arguments, scratch.env()) as fetches:
        (result,) = children.run([fetches])
    return float(result["ended"] - result["began"])


def _by_queue(scratch: Scratch, count: int) -> float:
    """Seconds."""
    scratch.clear()

    def lay_out(connection: psycopg.Connection[Any]) -> None:
        ids = connection.execute(_IDS).fetchall()
        payloads = tuple(json.dumps({"workspace_id": row[0]}) for row in ids)
        rows.fill(connection, count, type_name=FETCH, payloads=payloads)

    with Workers(
        scratch,
        threads=THREADS,
        ACW_GIT_PROTOCOLS=_PROTOCOLS,
        # The runner would add a fetch of every workspace to those that are counted.
        JOBS_WORKSPACE_FETCH_ENABLED="false",
    ) as workers:
        return real_jobs.drain(scratch, workers, lay_out, type_name=FETCH, count=count)


def check(clones: Sequence[Path], commit: str) -> None:
    """Raise CountError unless every clone has the commit on its branch of the remote's."""
    got = sum(
        (clone / _FETCHED).read_text().strip() == commit
        for clone in clones
        if (clone / _FETCHED).exists()
    )
    if got != len(clones):
        raise CountError(
            f"{len(clones):,} clones were fetched, and {got:,} have the newest commit: no figure"
        )


def _run(command: Sequence[str], *, env: Mapping[str, str], stdin: str = "") -> str:
    """What the command printed; raises BenchmarkError with what it complained of where it failed."""
    done = subprocess.run(  # noqa: S603 - git, or our own command
        command,
        env=dict(env),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        process_group=0,
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip()
        raise BenchmarkError(f"{' '.join(command[:4])} … failed: {said}")
    return done.stdout.strip()
