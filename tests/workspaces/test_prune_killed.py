"""Pruning that is killed, at each of its steps, in processes of their own: the next run finishes it or undoes it."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from django.db.models.functions import Now

from tests.workspaces import programs
from tests.workspaces.conftest import make_idle
from tests.workspaces.pruning.test_contents import everything_in
from tests.workspaces.remote import git
from workspaces import holds, prune, worktrees
from workspaces.archiving import restoring
from workspaces.models import LedgerEntry, Workspace, Worktree, WorktreeArchive
from workspaces.prune import Outcome, prune_worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[2]
POINTS = (
    "claimed",
    "moved",
    "half archived",
    "archived",
    "verified",
    "given up",
    "registration moved",
    "half deleted",
    "deleted",
    "written down",
)
TAKEN_BACK = POINTS[:5]
"""After these it is still where it can be put back from; after the others it is in its archive."""


def state_of(path: Path) -> list[str]:
    """What git says of it, but for the cache, which is not archived."""
    said = git("status", "--porcelain=v2", "--ignored", cwd=path).splitlines()
    return [line for line in said if line != "! node_modules/"]


def killed(
    workspace: Workspace, data_dir: Path, points: Sequence[str] = POINTS
) -> dict[str, tuple[Worktree, list[str]]]:
    """A worktree for each point at which its pruning was killed, and what git said of it before."""
    rows = {}
    for point in points:
        branch = f"acw/{point.replace(' ', '-')}"
        row = holds.acquire(workspace, branch=branch, holder="agent")
        everything_in(Path(row.path))
        status = state_of(Path(row.path))
        make_idle(holds.release(row.pk), days=31)
        rows[point] = (row, status)
    pairs = [word for point, (row, _) in rows.items() for word in (str(row.pk), point)]
    done = programs.run("dying_prunes", pairs, data_dir)
    assert done.split() == [str(-signal.SIGKILL)] * len(points)
    return rows


def check_nothing_lost(row: Worktree, status: list[str]) -> None:
    again = holds.acquire_again(row.pk, holder="agent")
    path = Path(again.path)
    assert again.path == row.path
    assert state_of(path) == status
    assert (path / ".env").read_text() == "KEY=1\n"
    assert (path / ".env").stat().st_mode & 0o777 == 0o600
    assert (path / "nested" / "inner").exists()
    assert git("log", "--format=%s", cwd=path / "nested") == "inner"


def test_the_next_run_finishes_what_was_killed_and_everything_is_done_once(
    workspace: Workspace, repository: Repository, data_dir: Path
):
    rows = killed(workspace, data_dir)
    gone = {row.pk for row, _ in rows.values()} - set(
        Worktree.objects.values_list("pk", flat=True)
    )
    assert gone == {rows["written down"][0].pk}
    for row, _ in rows.values():
        expected = Outcome.NOT_DUE if row.pk in gone else Outcome.PRUNED
        assert prune_worktree(row.pk) is expected
    assert not Worktree.objects.exists()
    for row, _ in rows.values():
        assert not Path(row.path).exists()
        assert worktrees.registration(repository, Path(row.path)) is None
    assert list((repository.directory / "trash").iterdir()) == []
    expected_ids = sorted(row.pk for row, _ in rows.values())
    written = LedgerEntry.objects.order_by("worktree_id")
    assert list(written.values_list("worktree_id", flat=True)) == expected_ids
    kept = WorktreeArchive.objects.order_by("worktree_id")
    assert list(kept.values_list("worktree_id", flat=True)) == expected_ids
    assert {a.state for a in WorktreeArchive.objects.all()} == {"verified"}
    for row, status in rows.values():
        check_nothing_lost(row, status)


def test_what_is_used_again_meanwhile_is_put_back_or_restored(
    workspace: Workspace, data_dir: Path
):
    rows = killed(workspace, data_dir)
    Worktree.objects.update(last_used_at=Now())
    for point, (row, status) in rows.items():
        assert prune_worktree(row.pk) is Outcome.NOT_DUE
        now = Worktree.objects.filter(pk=row.pk).first()
        if point in TAKEN_BACK:
            assert now is not None
            assert now.state == Worktree.State.READY
            cache = Path(row.path, "node_modules", "cache")
            assert cache.exists()  # put back, and not made anew from an archive
        else:
            assert now is None
            assert restoring.restore(row.pk, actor="ada").pk == row.pk
        check_nothing_lost(row, status)
    assert not prune.due().exists()


def test_whoever_wants_it_at_once_gets_it(workspace: Workspace, data_dir: Path):
    points = ("moved", "verified", "given up", "half deleted")
    for row, status in killed(workspace, data_dir, points).values():
        check_nothing_lost(row, status)
