from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.db import connection
from django.db.models.functions import Now

from tests.workspaces.conftest import make_idle
from tests.workspaces.remote import Remote, commit, git
from workspaces import holds
from workspaces.holding import activity
from workspaces.models import Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def test_an_operator_who_ages_the_row_alone_makes_no_use_of_it(
    repository: Repository, worktree: Worktree
):
    """As the checklist does; the files were made minutes ago."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE workspace_worktrees SET last_used_at = now() - INTERVAL '31 days'"
        )
    assert activity.since(repository, worktree, Path(worktree.path)) is None


@pytest.mark.parametrize("what", ["a file", "a commit", "a checkout"])
def test_work_without_a_hold_is_use(
    repository: Repository, worktree: Worktree, path: Path, what: str
):
    if what == "a file":
        (path / "new").touch()
    elif what == "a commit":
        git("commit", "--quiet", "--allow-empty", "-m", "empty", cwd=path)
    else:
        git("checkout", "--quiet", "--detach", cwd=path)
    Worktree.objects.update(
        prune_warning_at=worktree.last_used_at,
        use_seen_at=worktree.last_used_at - dt.timedelta(hours=1),
    )
    assert activity.note(repository, worktree, path)
    now = Worktree.objects.get()
    assert now.prune_warning_at is None
    assert now.last_used_at > worktree.last_used_at
    assert not activity.note(repository, worktree, path)


def test_use_of_long_ago_counts_from_then(
    repository: Repository, worktree: Worktree, path: Path, admin: Path
):
    """As where nothing looked at it for a while: what was done ten days ago is ten days old."""
    make_idle(worktree, days=40)
    Worktree.objects.update(use_seen_at=worktree.last_used_at - dt.timedelta(days=40))
    then = time.time() - 10 * 86_400
    for file in (path, *admin.glob("[A-Zi]*")):
        os.utime(file, (then, then))
    assert activity.note(repository, worktree, path)
    ago = worktree.last_used_at - Worktree.objects.get().last_used_at
    assert round(ago / dt.timedelta(days=1)) == 10


def test_what_the_service_and_other_worktrees_do_is_no_use(
    repository: Repository, worktree: Worktree, path: Path, remote: Remote
):
    other = holds.acquire(worktree.workspace, branch="acw/other", holder="agent")
    make_idle(worktree, days=31)
    remote.push("new")
    repository.fetch(remote.url, timeout=None, stop=None)
    commit(Path(other.path))
    git("gc", "--quiet", "--prune=now", cwd=Path(other.path))
    git("--no-optional-locks", "status", cwd=path)
    assert activity.since(repository, worktree, path) is None


@pytest.mark.parametrize(("ahead", "counts"), [(3500, True), (3700, False)])
def test_times_that_a_clock_was_ahead_count_and_later_ones_say_nothing(
    repository: Repository,
    worktree: Worktree,
    path: Path,
    admin: Path,
    ahead: float,
    counts: bool,
):
    Worktree.objects.update(use_seen_at=Now() - dt.timedelta(hours=1))
    future = time.time() + ahead
    for file in (path, *admin.glob("[A-Zi]*")):
        os.utime(file, (future, future))
    age = activity.since(repository, worktree, path)
    assert age == (dt.timedelta(0) if counts else None)


def test_a_held_one_needs_no_sign(
    repository: Repository, worktree: Worktree, path: Path
):
    holds.acquire_again(worktree.pk, holder="agent")
    (path / "new").touch()
    assert not activity.note(repository, worktree, path)


def test_processes_that_work_there_are_named(path: Path):
    assert activity.workers(path) == ""
    code = "import sys\nfile = open(sys.argv[1])\nprint(flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path / "README")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        assert activity.workers(path).endswith("works in it")
        assert activity.workers(path / "below") == ""
        process.stdin.close()
