"""Many at once: real threads, each with a connection of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest
from django.db import connection, transaction

from tests.workspaces.conftest import make_idle
from tests.workspaces.remote import git
from workspaces import holds, inspection, prune
from workspaces.exceptions import WorktreeBusy, WorktreeHeld
from workspaces.models import Workspace, Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")


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


def test_of_many_who_want_one_branch_one_gets_it(workspace: Workspace):
    results = at_once(
        8, lambda n: holds.acquire(workspace, branch="topic", holder=f"agent{n}")
    )
    got = [result for result in results if isinstance(result, Worktree)]
    refused = [result for result in results if isinstance(result, WorktreeHeld)]
    assert (len(got), len(refused)) == (1, 7)
    assert Worktree.objects.count() == 1


def test_of_many_who_want_one_free_worktree_one_gets_it(
    workspace: Workspace, worktree: Worktree
):
    results = at_once(
        8, lambda n: holds.acquire(workspace, branch="acw/work", holder=f"agent{n}")
    )
    assert sum(isinstance(result, Worktree) for result in results) == 1
    assert sum(isinstance(result, WorktreeHeld) for result in results) == 7


def test_who_cannot_use_it_lets_go_of_its_own_hold_only(
    workspace: Workspace, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    def released_and_taken_meanwhile(*args: object, **kwargs: object) -> None:
        holds.release(worktree.pk)
        monkeypatch.undo()
        path.mkdir()
        holds.acquire(workspace, branch="acw/work", holder="first")
        raise RuntimeError("broke")

    path = Path(worktree.path)
    shutil.rmtree(path)
    monkeypatch.setattr(holds, "_check_out_again", released_and_taken_meanwhile)
    with pytest.raises(RuntimeError, match="broke"):
        holds.acquire(workspace, branch="acw/work", holder="first")
    worktree.refresh_from_db()
    assert worktree.held_by == "first"


def test_many_get_a_worktree_each(workspace: Workspace):
    results = at_once(16, lambda n: holds.acquire(workspace, holder=f"agent{n}"))
    assert all(isinstance(result, Worktree) for result in results), results
    made = Worktree.objects.all()
    assert len({worktree.path for worktree in made}) == 16
    for worktree in made:
        assert git("status", "--porcelain", cwd=Path(worktree.path)) == ""


def test_an_acquire_between_the_look_and_the_claim_wins(
    workspace: Workspace, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    make_idle(worktree, days=31)
    claim = prune._claim

    def acquired_meanwhile(claimed: Worktree) -> bool:
        (got,) = at_once(
            1, lambda _: holds.acquire(workspace, branch="acw/work", holder="agent")
        )
        assert got == worktree
        return claim(claimed)

    monkeypatch.setattr(prune, "_claim", acquired_meanwhile)
    assert prune.prune_worktree(worktree.pk) is prune.Outcome.NOT_DUE
    assert Path(worktree.path, "README").exists()
    assert Worktree.objects.get().held_by == "agent"


def test_an_acquire_after_the_claim_is_refused(
    workspace: Workspace, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    make_idle(worktree, days=31)
    look = inspection.unsaved_work
    tried = []

    def while_it_is_looked_at(repository: Repository, path: Path, **options: object):
        tried.extend(
            at_once(1, lambda _: holds._take(workspace, "acw/work", holder="agent"))
        )
        return look(repository, path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(inspection, "unsaved_work", while_it_is_looked_at)
    assert prune.prune_worktree(worktree.pk) is prune.Outcome.PRUNED
    assert set(tried) == {None}
    assert not Worktree.objects.exists()


def test_a_claim_waits_for_an_acquire_that_has_not_committed(
    workspace: Workspace, worktree: Worktree
):
    make_idle(worktree, days=31)
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        assert holds._take(workspace, "acw/work", holder="agent")

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
        return prune.prune_worktree(Worktree.objects.get().pk)

    for _ in range(5):
        make_idle(Worktree.objects.get(), days=31)
        acquired, pruned = at_once(2, either)
        if isinstance(acquired, Exception):
            assert isinstance(acquired, WorktreeBusy)
            assert pruned is prune.Outcome.PRUNED
            acquired = holds.acquire(workspace, branch="acw/work", holder="agent")
        row = Worktree.objects.get()
        assert (row.pk, row.held_by) == (acquired.pk, "agent")  # type: ignore[union-attr]
        assert Path(row.path, "README").exists()
        holds.release(row.pk)
