"""Many at once: real threads, each with a connection of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest
from django.conf import settings
from django.db import connection, transaction

from tests.acceptance.conftest import url_of
from tests.workspaces.conftest import make_idle
from tests.workspaces.remote import git
from workspaces import holds, prune
from workspaces.archiving import snapshot
from workspaces.exceptions import WorktreeHeld
from workspaces.holding import checkouts, leases
from workspaces.models import Workspace, Worktree, WorktreeArchive
from workspaces.querysets import WorktreeQuerySet
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]


def at_once(count: int, verb: Callable[[int], T]) -> list[T | Exception]:
    """Call ``verb(n)`` in as many threads; return what each gave or raised."""

    def call(n: int) -> T | Exception:
        try:
            return verb(n)
        except Exception as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(call, range(count)))


CROWD = 48
"""As many as the report of failing worktrees had."""


def crowd(what: str, *, processes: int, threads: int) -> list[tuple[str, str]]:
    """Have so many acquire; of each the name of what it raised, and its words or the path that it got."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.workspaces.crowd",
            *map(str, (processes, threads)),
            what,
        ],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "acw.settings",
            "DATABASE_URL": url_of(connection.settings_dict["NAME"]),
            "ACW_DATA_DIR": str(settings.ACW_DATA_DIR),
            "ACW_HOST": "test-host",
            "ACW_GIT_PROTOCOLS": "file",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return [(raised, said) for raised, said in json.loads(done.stdout)]


def all_is_in_order(repository: Repository) -> None:
    """Rows, directories, registrations and branches are the same set, and each is whole and locked for its hold."""
    rows = list(Worktree.objects.all())
    branches = git(
        "for-each-ref", "--format=%(refname:short)", "refs/heads", cwd=repository.path
    )
    assert sorted(branches.split()) == sorted(row.branch for row in rows)
    there = {str(path) for path in (repository.directory / "worktrees").iterdir()}
    assert there == {row.path for row in rows}
    listed = git("worktree", "list", "--porcelain", cwd=repository.path)
    for row in rows:
        assert row.held_by
        assert row.state == Worktree.State.READY
        assert (Path(row.path) / "README").read_text() == "hello\n"
        assert (
            f"branch refs/heads/{row.branch}\nlocked acw:{row.pk}:{row.fencing_no}\n"
            in f"{listed}\n"
        )
    assert listed.count("locked ") == len(rows)
    assert [*repository.path.rglob("*.lock")] == []


def test_of_48_in_processes_and_threads_who_want_one_branch_one_gets_it(
    workspace: Workspace, repository: Repository
):
    came_to = crowd("one", processes=4, threads=CROWD // 4)
    assert Counter(raised for raised, _ in came_to) == {
        "": 1,
        "WorktreeHeld": CROWD - 1,
    }
    all_is_in_order(repository)


@pytest.mark.parametrize("what", ["any", "each"])
def test_48_in_processes_and_threads_get_a_worktree_each(
    workspace: Workspace, repository: Repository, what: str
):
    came_to = crowd(what, processes=4, threads=CROWD // 4)
    assert Counter(raised for raised, _ in came_to) == {"": CROWD}, came_to
    assert len({path for _, path in came_to}) == CROWD
    all_is_in_order(repository)


def test_of_48_who_want_one_free_worktree_one_gets_it(
    workspace: Workspace, worktree: Worktree, repository: Repository
):
    results = at_once(
        CROWD, lambda n: holds.acquire(workspace, branch="acw/work", holder=f"agent{n}")
    )
    got = [result for result in results if isinstance(result, Worktree)]
    refused = [result for result in results if isinstance(result, WorktreeHeld)]
    assert (len(got), len(refused)) == (1, CROWD - 1)
    assert got[0].fencing_no == 2
    all_is_in_order(repository)


def test_of_48_who_want_one_that_is_gone_or_was_pruned_one_gets_it_whole(
    workspace: Workspace, worktree: Worktree, repository: Repository
):
    path = Path(worktree.path)

    def acquired(verb: Callable[[int], Worktree]) -> Worktree:
        results = at_once(CROWD // 3, verb)
        (got,) = [result for result in results if isinstance(result, Worktree)]
        refused = [result for result in results if isinstance(result, WorktreeHeld)]
        assert len(refused) == CROWD // 3 - 1, results
        all_is_in_order(repository)
        return got

    shutil.rmtree(path)
    got = acquired(
        lambda n: holds.acquire(workspace, branch="acw/work", holder=f"agent{n}")
    )
    assert got.pk == worktree.pk
    (path / ".env").write_text("KEY=1")
    holds.release(got.pk)
    prune.archive_worktree(got.pk, actor="ada")
    got = acquired(lambda n: holds.acquire_again(worktree.pk, holder=f"agent{n}"))
    assert got.pk == worktree.pk
    assert (path / ".env").exists()


def test_who_cannot_use_it_lets_go_of_its_own_hold_only(
    workspace: Workspace, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    def released_and_taken_meanwhile(*_: object, **__: object) -> None:
        holds.release(worktree.pk)
        leases.hold(worktree.pk, holder="first", lease=None)
        raise RuntimeError("broke")

    shutil.rmtree(worktree.path)
    monkeypatch.setattr(checkouts, "make_whole", released_and_taken_meanwhile)
    with pytest.raises(RuntimeError, match="broke"):
        holds.acquire(workspace, branch="acw/work", holder="first")
    worktree.refresh_from_db()
    assert (worktree.held_by, worktree.fencing_no) == ("first", 3)


def test_an_acquire_between_the_look_and_the_claim_wins(
    workspace: Workspace, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    make_idle(worktree, days=31)
    claim = prune._claim

    def acquired_meanwhile(rows: WorktreeQuerySet, claimed: Worktree) -> bool:
        (got,) = at_once(
            1, lambda _: holds.acquire(workspace, branch="acw/work", holder="agent")
        )
        assert got == worktree
        return claim(rows, claimed)

    monkeypatch.setattr(prune, "_claim", acquired_meanwhile)
    assert prune.prune_worktree(worktree.pk) is prune.Outcome.NOT_DUE
    assert Path(worktree.path, "README").exists()
    assert Worktree.objects.get().held_by == "agent"


def test_an_acquire_after_the_claim_waits_and_gets_it_restored(
    workspace: Workspace, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    (Path(worktree.path) / ".env").write_text("KEY=1")
    make_idle(worktree, days=31)
    take = snapshot.take
    waits: list[Future[Worktree]] = []

    def acquire() -> Worktree:
        try:
            return holds.acquire(workspace, branch="acw/work", holder="agent")
        finally:
            connection.close()

    def while_it_is_archived(*args: Any, **options: Any) -> WorktreeArchive:
        assert Worktree.objects.get().state == Worktree.State.PRUNING
        waits.append(pool.submit(acquire))
        return take(*args, **options)

    monkeypatch.setattr(snapshot, "take", while_it_is_archived)
    with ThreadPoolExecutor(1) as pool:
        assert prune.prune_worktree(worktree.pk) is prune.Outcome.PRUNED
        got = waits[0].result()
    assert (got.pk, got.path, got.held_by) == (worktree.pk, worktree.path, "agent")
    assert (Path(got.path) / ".env").read_text() == "KEY=1"


def test_a_claim_waits_for_an_acquire_that_has_not_committed(
    workspace: Workspace, worktree: Worktree
):
    make_idle(worktree, days=31)
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        assert leases.take(Worktree.objects.all(), holder="agent", lease=None)

        def pruned() -> prune.Outcome:
            try:
                return prune.prune_worktree(worktree.pk)
            finally:
                connection.close()

        outcome = pool.submit(pruned)
    assert outcome.result() is prune.Outcome.NOT_DUE


def test_acquire_and_prune_at_once_never_lose_a_held_worktree(
    workspace: Workspace, worktree: Worktree
):
    def either(n: int) -> Worktree | prune.Outcome:
        if n == 0:
            return holds.acquire(workspace, branch="acw/work", holder="agent")
        return prune.prune_worktree(worktree.pk)

    for turn in range(4):
        (Path(worktree.path) / "untracked").write_text(f"{turn}")
        make_idle(worktree, days=31)
        acquired, pruned = at_once(2, either)
        assert isinstance(acquired, Worktree), acquired
        assert pruned in {prune.Outcome.PRUNED, prune.Outcome.NOT_DUE}
        row = Worktree.objects.get()
        assert (row.pk, row.held_by) == (worktree.pk, "agent")
        assert Path(row.path, "untracked").read_text() == f"{turn}"
        holds.release(row.pk)
