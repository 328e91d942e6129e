"""Worktrees as their users have them: made by a worker, worked in, pruned by the runner, and had again; also where the worker is killed."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.product import Product, await_true
from tests.acceptance.remote import Remote, git
from tests.acceptance.test_main_job import QUICK

WHO = ("-c", "user.name=Agent", "-c", "user.email=agent@example.org")
FILES = 400
KILLS = 4
# What one prune of so many files takes here, more or less.
_LATEST = 1.5


def manifest(directory: Path) -> dict[str, tuple[str, str]]:
    """Every path but git's own file, with its mode and its bytes."""
    found = {}
    for place, names, files in os.walk(directory):
        for name in [*names, *files]:
            path = Path(place, name)
            shown = str(path.relative_to(directory))
            status = path.lstat()
            content = b"" if stat.S_ISDIR(status.st_mode) else path.read_bytes()
            mode = f"{status.st_mode:o}"
            found[shown] = (mode, hashlib.sha256(content).hexdigest())
    found.pop(".git", None)
    return found


def status_of(path: Path) -> str:
    return git("-C", str(path), "status", "--porcelain=v2", "--branch", "--ignored")


@pytest.fixture
def product(install: Callable[..., Product]) -> Product:
    product = install(**QUICK, JOBS_JOB_REAPER_LEASE_TIMEOUT="2s")
    product.add_admin("ada")
    return product


def acquired(product: Product, *arguments: str) -> dict[str, Any]:
    said = product.manage("worktree", "acquire", "demo", *arguments, "--json")
    found: dict[str, Any] = json.loads(said)
    return found


def worked_in(product: Product, *, files: int = 3) -> tuple[int, Path]:
    """A released worktree with work of every kind that is nowhere else."""
    row = acquired(product, "--branch", "acw/work", "--holder", "agent")
    path = Path(row["path"])
    (path / ".gitignore").write_text(".env\nnode_modules/\n")
    in_it = ("-C", str(path), *WHO)
    git(*in_it, "add", ".gitignore")
    git(*in_it, "commit", "--quiet", "--message", "not pushed")
    (path / "first").write_text("changed and staged")
    git(*in_it, "add", "first")
    (path / "first").write_text("changed again")
    (path / ".env").write_text("TOKEN=x")
    (path / ".env").chmod(0o600)
    for number in range(files):
        (path / f"note-{number}").write_text(f"{number}\n" * 100)
    product.manage("worktree", "release", str(row["id"]))
    return int(row["id"]), path


def age(product: Product, worktree_id: int) -> None:
    """As if all of that had been 31 days ago."""
    product.sql(
        "UPDATE workspace_worktrees SET last_used_at = now() - INTERVAL '31 days', use_seen_at = now() WHERE id = %s",
        worktree_id,
    )


def await_pruned(product: Product, worktree_id: int) -> None:
    product.await_sql(
        "SELECT WHERE NOT EXISTS (SELECT FROM workspace_worktrees WHERE id = %s)",
        worktree_id,
    )


def test_a_worktree_is_pruned_and_had_again_with_all_that_was_in_it(
    product: Product, remote: Remote
) -> None:
    product.worker()
    product.manage("workspace", "add", "demo", remote.url)
    assert product.sql(
        "SELECT FROM jobs WHERE type = 'workspace.clone' AND status = 'completed'"
    )
    worktree_id, path = worked_in(product)
    files, said = manifest(path), status_of(path)
    age(product, worktree_id)
    printed = product.manage("runners", "run", "worktree_prune", "--dry-run")
    assert "acw/work" in printed
    assert path.is_dir()
    product.manage("runners", "run", "worktree_prune")
    await_pruned(product, worktree_id)
    assert not path.exists()
    (listed,) = json.loads(product.manage("worktree", "archives", "--json"))
    assert listed["worktree_id"] == worktree_id

    product.manage("worktree", "restore", str(worktree_id))
    assert manifest(path) == files
    assert status_of(path) == said
    product.manage("worktree", "archive", str(worktree_id))
    await_pruned(product, worktree_id)

    again = acquired(product, "--branch", "acw/work", "--holder", "agent")
    assert (again["id"], again["path"]) == (worktree_id, str(path))
    assert manifest(path) == files
    assert status_of(path) == said
    assert product.manage("worktree", "audit").count("whole") == 2


def test_a_worker_that_is_killed_while_it_prunes_loses_nothing(
    product: Product, remote: Remote
) -> None:
    seed = random.randrange(2**32)  # noqa: S311 - no secret
    moments = random.Random(seed)  # noqa: S311
    product.manage("workspace", "add", "demo", remote.url, "--now")
    worktree_id, path = worked_in(product, files=FILES)
    files, said = manifest(path), status_of(path)
    age(product, worktree_id)
    product.manage("runners", "run", "worktree_prune")
    for _ in range(KILLS):
        worker = product.worker()
        running = "SELECT FROM jobs WHERE type = 'worktree.prune' AND status IN ('running', 'completed')"
        product.await_sql(running)
        threading.Event().wait(moments.uniform(0, _LATEST))
        worker.send(signal.SIGKILL)
        worker.wait()
    product.worker()
    # The attempts that the kills have cost are not the prune's: the next tick asks again.
    product.manage("runners", "run", "worktree_prune")

    def gone() -> bool:
        product.sql("UPDATE jobs SET run_at = now() WHERE status = 'pending'")
        rows = "SELECT FROM workspace_worktrees WHERE id = %s"
        return not product.sql(rows, worktree_id)

    await_true(gone, f"it is pruned (seed {seed})", evidence=product.evidence)
    assert not path.exists()
    assert product.sql("SELECT count(*) FROM worktree_ledger") == [(1,)]
    told = "SELECT count(*) FROM notifications WHERE topic = 'worktree.pruned'"
    assert product.sql(told) == [(1,)]

    product.manage("worktree", "restore", str(worktree_id))
    assert manifest(path) == files, seed
    assert status_of(path) == said, seed
