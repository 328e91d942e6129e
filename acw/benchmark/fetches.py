"""Fetches of many small clones by one worker, beside a plain `git fetch` of each.

The remotes are repositories on this machine, which get a new commit before each measurement: every fetch has
something to bring, and what it brought is looked for afterwards. What the product does beside `git fetch`
(its look at the clone's configuration, the telling of the clone what came, the rows) is in the ratio. The
floor has as many threads as the worker, and fetches as the product does, into the control directories.

Each clone has a remote of its own; a second figure has one remote for all.
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

JOBS, JOBS_SHORT = 300, 20
THREADS = 4

_PROTOCOLS = "file"
_FIRST = "benchmark-0"
CONTROL = "control.git"
_FETCHED = Path("refs/remotes/origin/main")
_MAIN = Path("refs/heads/main")
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
SELECT copy.name, copy.url, host, copy.path, default_branch, now()
FROM workspaces CROSS JOIN unnest(%s::text[], %s::text[], %s::text[]) AS copy (name, url, path)
WHERE workspaces.name = %s
"""
_SHARE = "UPDATE workspaces SET url = (SELECT min(url) FROM workspaces)"
_HAVE_DUE = "UPDATE workspaces SET next_fetch_at = now() - interval '1 second'"
_IDS = "SELECT id FROM workspaces ORDER BY 1"


@dataclass(frozen=True, kw_only=True)
class Remote:
    """A bare repository with one branch."""

    path: Path

    @property
    def url(self) -> str:
        return self.path.as_uri()

    def create(self) -> None:
        """Make it, with one commit."""
        self.git("init", "--quiet", "--bare", "--initial-branch=main")
        self.commit("first")

    def commit(self, text: str) -> str:
        """Put a commit with another file on ``main``, and return its hash."""
        blob = self.git("hash-object", "-w", "--stdin", stdin=text)
        tree = self.git("mktree", stdin=f"100644 blob {blob}\tfile\n")
        parent = self.git("for-each-ref", "--format=%(objectname)", "refs/heads/main")
        parents = ["-p", parent] if parent else []
        commit = self.git("commit-tree", tree, *parents, "-m", text)
        self.git("update-ref", "refs/heads/main", commit)
        return commit

    def git(self, *arguments: str, stdin: str = "") -> str:
        """What git printed; raises BenchmarkError where it failed."""
        command = ["git", f"--git-dir={self.path}", *arguments]
        return _run(command, env=_GIT_ENVIRONMENT, stdin=stdin)


def measure(scratch: Scratch, *, rounds: int, short: bool) -> list[Figure]:
    """Fetches a second: of a remote each, and of one remote for all."""
    count = JOBS_SHORT if short else JOBS
    remotes = make_remotes(scratch.directory / "remotes", count)
    clones = make_clones(scratch, remotes)
    own = _measure(scratch, remotes, clones, rounds=rounds)
    with scratch.connect() as connection:
        connection.execute(_SHARE)
    shared = _measure(scratch, remotes[:1] * count, clones, rounds=rounds)
    return [
        _figure(f"fetches of local repositories, {THREADS} threads", own),
        _figure("the same of one repository", shared, goal=""),
    ]


def _figure(
    name: str, rates: tuple[list[float], list[float]], *, goal: str = "≥ 0.8"
) -> Figure:
    plain, queue = rates
    return of_rounds(
        name,
        queue,
        unit="fetches/s",
        ceilings=plain,
        against="a plain git fetch of each, as many threads",
        goal=goal,
    )


def _measure(
    scratch: Scratch, remotes: Sequence[Remote], clones: Sequence[Path], *, rounds: int
) -> tuple[list[float], list[float]]:
    """Fetches a second of each round: plain ones, and by the worker."""
    plain, queue = [], []
    for number in range(rounds):
        wanted = commit_everywhere(remotes, f"for the plain fetches of round {number}")
        plain.append(len(clones) / _plain(scratch, remotes, clones))
        check([clone.with_name(CONTROL) for clone in clones], wanted)
        wanted = commit_everywhere(remotes, f"for the jobs of round {number}")
        queue.append(len(clones) / _by_queue(scratch))
        check(clones, wanted)
    return plain, queue


def make_remotes(directory: Path, count: int) -> list[Remote]:
    """So many with the same commit."""
    directory.mkdir()
    first = Remote(path=directory / "0.git")
    first.create()
    others = [Remote(path=directory / f"{number}.git") for number in range(1, count)]
    for remote in others:
        shutil.copytree(first.path, remote.path)
    return [first, *others]


def commit_everywhere(remotes: Sequence[Remote], text: str) -> str:
    """Put the same commit on ``main`` of each, and return its hash."""
    first = remotes[0]
    wanted = first.commit(text)
    for remote in {remote.path for remote in remotes[1:]} - {first.path}:
        # A file at a time, the reference last: quicker than git.
        shutil.copytree(first.path / "objects", remote / "objects", dirs_exist_ok=True)
        (remote / _MAIN).write_text(f"{wanted}\n")
    return wanted


def make_clones(scratch: Scratch, remotes: Sequence[Remote]) -> list[Path]:
    """A clone for each: one added as an operator adds it, the others copies of it with their rows."""
    _run(
        [
            sys.executable,
            str(MANAGE),
            "workspace",
            "add",
            _FIRST,
            remotes[0].url,
            "--now",
        ],
        env=scratch.env(ACW_GIT_PROTOCOLS=_PROTOCOLS),
    )
    with scratch.connect() as connection:
        row = connection.execute(_PATH_OF_FIRST, [_FIRST]).fetchone()
        if row is None:
            raise BenchmarkError(f"the workspace {_FIRST} was added and has no row")
        first = Path(row[0])
        names = [f"benchmark-{number}" for number in range(1, len(remotes))]
        urls = [remote.url for remote in remotes[1:]]
        copies = [first.parents[1] / name / first.name for name in names]
        for copy in copies:
            shutil.copytree(first.parent, copy.parent)
        connection.execute(_ADD_COPIES, [names, urls, list(map(str, copies)), _FIRST])
    return [first, *copies]


def _plain(
    scratch: Scratch, remotes: Sequence[Remote], clones: Sequence[Path]
) -> float:
    """Seconds."""
    pairs = scratch.directory / "pairs"
    pairs.write_text(
        "".join(
            f"{clone}\t{remote.url}\n"
            for clone, remote in zip(clones, remotes, strict=True)
        )
    )
    arguments = [pairs, THREADS]
    with Child("acw.benchmark.plain_fetches", arguments, scratch.env()) as fetches:
        (result,) = children.run([fetches])
    return float(result["ended"] - result["began"])


def _by_queue(scratch: Scratch) -> float:
    """Seconds."""
    scratch.clear()
    with scratch.connect() as connection:
        connection.execute(_HAVE_DUE)
        ids = [row[0] for row in connection.execute(_IDS)]

    def lay_out(connection: psycopg.Connection[Any]) -> None:
        # As the runner does: one for each, since their remotes are paths.
        payloads = tuple(
            json.dumps({"workspace_id": key, "when_due": True}) for key in ids
        )
        rows.fill(connection, len(ids), type_name=FETCH, payloads=payloads)

    with Workers(
        scratch,
        threads=THREADS,
        ACW_GIT_PROTOCOLS=_PROTOCOLS,
        # The runner would add a fetch of every workspace to those that are counted.
        JOBS_WORKSPACE_FETCH_ENABLED="false",
        JOBS_WORKSPACE_RECONCILE_ENABLED="false",
        JOBS_WORKSPACE_MAINTENANCE_ENABLED="false",
    ) as workers:
        return real_jobs.drain(
            scratch, workers, lay_out, type_name=FETCH, count=len(ids)
        )


def check(repositories: Sequence[Path], commit: str) -> None:
    """Raise CountError unless every one has the commit on its branch of the remote's."""
    got = sum(
        (repository / _FETCHED).read_text().strip() == commit
        for repository in repositories
        if (repository / _FETCHED).exists()
    )
    if got != len(repositories):
        raise CountError(
            f"{len(repositories):,} clones were fetched, and {got:,} have the newest commit: no figure"
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
