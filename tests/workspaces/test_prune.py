from __future__ import annotations

import datetime as dt
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from notify.models import AuditEntry
from tests.workspaces.conftest import Told, make_idle
from tests.workspaces.factories import AdminFactory, UserFactory
from tests.workspaces.pruning.test_contents import everything_in
from tests.workspaces.remote import commit, git
from workspaces import holds, prune, worktrees
from workspaces.archiving import restoring, snapshot
from workspaces.exceptions import (
    ArchiveTooLarge,
    GitFailed,
    WorktreeError,
    WrongHost,
)
from workspaces.holding import activity
from workspaces.models import LedgerEntry, Workspace, Worktree, WorktreeArchive
from workspaces.prune import Outcome, archive_worktree, prune_worktree
from workspaces.pruning import forecast
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def test_directory_registration_and_row_go_and_branch_and_archive_stay(
    worktree: Worktree,
    path: Path,
    trash: Path,
    repository: Repository,
    told: Told,
    caplog: pytest.LogCaptureFixture,
):
    AdminFactory()
    caplog.set_level(logging.INFO)
    assert prune_worktree(worktree.pk) is Outcome.PRUNED
    assert not path.exists()
    assert list(trash.parent.iterdir()) == []
    assert worktrees.registration(repository, path) is None
    assert not Worktree.objects.exists()
    assert repository.local_branch("acw/work") is not None
    assert "worktree.pruned" in caplog.messages
    (archive,) = WorktreeArchive.objects.all()
    assert archive.state == WorktreeArchive.State.VERIFIED
    assert archive.reason == WorktreeArchive.Reason.PRUNED
    assert repository.commit_of(archive.ref) == archive.commit_sha
    (entry,) = LedgerEntry.objects.all()
    assert (entry.action, entry.actor, entry.worktree_id) == (
        "pruned",
        "system",
        worktree.pk,
    )
    assert (entry.archive_id, entry.commit_sha) == (archive.pk, archive.commit_sha)
    assert entry.manifest_digest == archive.manifest_digest != ""
    assert "every byte on the disk is equal" in entry.verified
    audited = AuditEntry.objects.get()
    assert (audited.action, audited.target) == (
        "worktree.pruned",
        f"worktree:{worktree.pk}",
    )
    (notification,) = told("worktree.pruned")
    assert f"`worktree restore {worktree.pk}`" in notification.body


def said_of(path: Path) -> list[str]:
    """What git says of it, but for the cache, which is not archived."""
    said = git("status", "--porcelain=v2", "--ignored", cwd=path).splitlines()
    return [line for line in said if line != "! node_modules/"]


def test_everything_of_it_can_be_had_again(worktree: Worktree, path: Path):
    everything_in(path)
    status = said_of(path)
    make_idle(worktree, days=31)
    content = {
        file.relative_to(path): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and file.name != ".git"
    }
    assert prune_worktree(worktree.pk) is Outcome.PRUNED
    assert not path.exists()
    restored = restoring.restore(worktree.pk, actor="ada")
    assert (restored.pk, restored.path) == (worktree.pk, worktree.path)
    assert said_of(path) == status
    cache = Path("node_modules/cache")
    assert {file: (path / file).read_bytes() for file in content if file != cache} == {
        file: bytes_ for file, bytes_ in content.items() if file != cache
    }


def test_acquiring_it_again_brings_it_back(worktree: Worktree, path: Path):
    (path / "draft").write_text("mine\n")
    make_idle(worktree, days=31)
    prune_worktree(worktree.pk)
    again = holds.acquire_again(worktree.pk, holder="agent")
    assert Path(again.path, "draft").read_text() == "mine\n"


@pytest.mark.parametrize("days", [0, 28, 29.99])
def test_one_that_is_not_due_is_left_alone(worktree: Worktree, days: float):
    make_idle(worktree, days=days)
    assert prune_worktree(worktree.pk) is Outcome.NOT_DUE
    assert Path(worktree.path).exists()
    assert Worktree.objects.get().state == Worktree.State.READY


def test_a_held_one_is_never_pruned(workspace: Workspace, worktree: Worktree):
    holds.acquire(workspace, branch="acw/work", holder="agent")
    make_idle(worktree, days=4000)
    assert prune_worktree(worktree.pk) is Outcome.NOT_DUE
    assert Path(worktree.path).exists()


def test_one_that_is_gone_already_is_no_error():
    assert prune_worktree(12345) is Outcome.NOT_DUE


def test_with_a_warning_required_only_what_was_warned_of_long_ago_goes(
    worktree: Worktree, path: Path, settings: Settings
):
    settings.JOBS_WORKTREE_PRUNE_REQUIRE_WARNING = True
    assert prune_worktree(worktree.pk) is Outcome.NOT_DUE
    warned = Worktree.objects.get().last_used_at
    Worktree.objects.update(prune_warning_at=warned + dt.timedelta(days=30))
    assert prune_worktree(worktree.pk) is Outcome.NOT_DUE
    Worktree.objects.update(prune_warning_at=warned + dt.timedelta(days=27))
    assert prune_worktree(worktree.pk) is Outcome.PRUNED


def test_what_was_done_in_it_without_holding_it_counts_as_use(
    worktree: Worktree, path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    Worktree.objects.update(use_seen_at=Now() - dt.timedelta(hours=1))
    commit(path)
    assert prune_worktree(worktree.pk) is Outcome.NOT_DUE
    assert "worktree.used" in caplog.messages
    now = Worktree.objects.get()
    assert now.last_used_at > worktree.last_used_at
    make_idle(worktree, days=31)
    assert prune_worktree(worktree.pk) is Outcome.PRUNED


@pytest.fixture
def too_large(worktree: Worktree, path: Path, settings: Settings) -> Path:
    """A file that makes the worktree too large to be archived."""
    settings.ACW_ARCHIVE_MAX_SIZE = 1024
    file = path / "large"
    file.write_bytes(os.urandom(2000))
    make_idle(worktree, days=31)
    return file


def test_one_that_cannot_be_archived_stays_and_its_owner_is_told_once(
    worktree: Worktree,
    path: Path,
    trash: Path,
    too_large: Path,
    told: Told,
    caplog: pytest.LogCaptureFixture,
):
    owner = UserFactory()
    Workspace.objects.update(owner=owner)
    before = os.lstat(path).st_ino
    for _ in range(3):
        assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    assert os.lstat(path).st_ino == before
    assert not trash.exists()
    assert git("status", "--porcelain", cwd=path) == "?? large"
    worktree.refresh_from_db()
    assert worktree.state == Worktree.State.READY
    assert worktree.prune_blocked_at is not None
    assert "ACW_ARCHIVE_MAX_SIZE" in worktree.prune_blocked_reason
    (notification,) = told("worktree.prune_blocked")
    assert notification.user == owner
    assert "ACW_ARCHIVE_MAX_SIZE" in notification.body
    assert caplog.messages.count("worktree.prune_blocked") == 1
    assert not LedgerEntry.objects.exists()


@pytest.mark.parametrize("what", ["tree", "commit", "index", "branch"])
def test_what_git_cannot_read_keeps_it_and_its_owner_is_told_once(
    worktree: Worktree, path: Path, repository: Repository, told: Told, what: str
):
    AdminFactory()
    early = commit(path, "early.txt")
    commit(path, "late.txt")
    if what == "index":
        admin = worktrees.registration(repository, path)
        assert admin
        (admin / "index").write_bytes(b"garbage")
    elif what == "branch":
        (repository.path / "refs/heads/acw/work").write_text("1" * 40 + "\n")
    else:
        damaged = {"tree": git("rev-parse", "HEAD^{tree}", cwd=path), "commit": early}
        name = damaged[what]
        (repository.path / "objects" / name[:2] / name[2:]).unlink()
    make_idle(worktree, days=31)
    for _ in range(2):
        assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    (notification,) = told("worktree.prune_blocked")
    assert "git cannot read" in notification.body
    assert (path / "late.txt").exists()


def test_a_file_in_the_place_of_its_directory_keeps_it_and_is_told(
    worktree: Worktree, path: Path, told: Told
):
    AdminFactory()
    shutil.rmtree(path)
    path.write_text("somebody's\n")
    make_idle(worktree, days=31)
    for _ in range(2):
        assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    assert path.read_text() == "somebody's\n"
    (notification,) = told("worktree.prune_blocked")
    assert "is no directory any more" in notification.body


def test_one_that_an_agent_has_moved_is_not_taken_for_gone(
    worktree: Worktree, path: Path, repository: Repository
):
    (path / "loose").write_text("work\n")
    moved = path.with_name("elsewhere")
    move = ("worktree", "move", "--force", "--force")
    git(*move, str(path), str(moved), cwd=repository.path)
    make_idle(worktree, days=31)
    assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    worktree.refresh_from_db()
    assert f"it was moved to {moved}" in worktree.prune_blocked_reason
    (said,) = forecast.lines()
    assert f"would be kept: it was moved to {moved}" in said
    git(*move, str(moved), str(path), cwd=repository.path)
    make_idle(worktree, days=31)
    assert prune_worktree(worktree.pk) is Outcome.PRUNED
    restoring.restore(worktree.pk, actor="ada")
    assert (path / "loose").read_text() == "work\n"


def test_what_git_may_do_when_it_is_tried_again_is_told_nobody(
    worktree: Worktree, path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
):
    AdminFactory()

    def fail(*_: object, **__: object) -> WorktreeArchive:
        raise GitFailed("fast-import", 128, stderr="fatal: No space left on device")

    monkeypatch.setattr(snapshot, "take", fail)
    with pytest.raises(GitFailed):
        prune_worktree(worktree.pk)
    worktree.refresh_from_db()
    assert worktree.state == Worktree.State.READY
    assert path.is_dir()
    assert told("worktree.prune_blocked") == []


def test_another_reason_is_told_again(worktree: Worktree, too_large: Path, told: Told):
    AdminFactory()
    prune_worktree(worktree.pk)
    too_large.write_bytes(os.urandom(3000))
    prune_worktree(worktree.pk)
    assert len(told("worktree.prune_blocked")) == 2


def test_it_goes_once_what_kept_it_is_gone(worktree: Worktree, too_large: Path):
    assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    too_large.unlink()
    make_idle(worktree, days=31)
    assert prune_worktree(worktree.pk) is Outcome.PRUNED


def test_one_that_a_process_works_in_stays(worktree: Worktree, path: Path, told: Told):
    AdminFactory()
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], cwd=path, stdin=subprocess.PIPE
    ) as process:
        assert prune_worktree(worktree.pk) is Outcome.BLOCKED
        assert process.stdin
        process.stdin.close()
    assert "works in it" in told("worktree.prune_blocked")[0].body
    assert prune_worktree(worktree.pk) is Outcome.PRUNED


def test_a_directory_that_is_gone_leaves_an_archive_of_what_git_kept(
    worktree: Worktree, path: Path, repository: Repository
):
    git("checkout", "--quiet", "--detach", cwd=path)
    lost = commit(path)
    shutil.rmtree(path)
    make_idle(worktree, days=31)
    assert prune_worktree(worktree.pk) is Outcome.PRUNED
    assert worktrees.registration(repository, path) is None
    assert not Worktree.objects.exists()
    archive = WorktreeArchive.objects.get()
    git("merge-base", "--is-ancestor", lost, archive.commit_sha, cwd=repository.path)


def test_one_of_which_nothing_is_left_is_written_down_as_that(
    worktree: Worktree, path: Path, admin: Path
):
    shutil.rmtree(admin)
    shutil.rmtree(path)
    assert prune_worktree(worktree.pk) is Outcome.PRUNED
    (entry,) = LedgerEntry.objects.all()
    assert (entry.archive_id, entry.verified) == (None, "")


def test_a_directory_that_git_does_not_know_is_archived_all_the_same(
    worktree: Worktree, path: Path, admin: Path
):
    (path / "draft").write_text("mine\n")
    shutil.rmtree(admin)
    make_idle(worktree, days=31)
    assert prune_worktree(worktree.pk) is Outcome.PRUNED
    restoring.restore(worktree.pk, actor="ada")
    assert (path / "draft").read_text() == "mine\n"


def test_what_links_within_lead_to_is_left(
    worktree: Worktree, path: Path, tmp_path: Path
):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "kept").touch()
    (path / "node_modules").symlink_to(tmp_path / "shared")
    make_idle(worktree, days=31)
    assert prune_worktree(worktree.pk) is Outcome.PRUNED
    assert (tmp_path / "shared" / "kept").exists()


def test_another_hosts_worktree_is_not_touched(
    worktree: Worktree, path: Path, settings: Settings
):
    settings.ACW_HOST = "elsewhere"
    with pytest.raises(WrongHost):
        prune_worktree(worktree.pk)
    assert path.exists()


def test_one_can_be_archived_at_once_by_whoever_asks(worktree: Worktree):
    archive = archive_worktree(worktree.pk, actor="ada")
    assert archive is not None
    assert (archive.reason, archive.actor) == ("asked", "ada")
    assert LedgerEntry.objects.get().actor == "ada"
    assert not Worktree.objects.exists()


def test_one_that_is_let_go_of_while_it_is_asked_for_is_claimed_before_it_is_removed(
    workspace: Workspace, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    """Unclaimed, it would be anybody's to acquire while its directory is away."""
    holds.acquire(workspace, branch="acw/work", holder="agent")
    refuse = prune.refuse

    def let_go(found: Worktree | None, worktree_id: int) -> None:
        holds.release(worktree_id)
        refuse(prune._find(worktree_id), worktree_id)

    monkeypatch.setattr(prune, "refuse", let_go)
    assert archive_worktree(worktree.pk, actor="ada") is not None
    assert not Worktree.objects.filter(pk=worktree.pk).exists()
    assert LedgerEntry.objects.get().action == LedgerEntry.Action.PRUNED


def test_of_one_that_nothing_is_left_of_no_archive_of_an_earlier_life_is_named(
    worktree: Worktree, path: Path, repository: Repository
):
    assert archive_worktree(worktree.pk, actor="ada") is not None
    restoring.restore(worktree.pk, actor="ada")
    admin = worktrees.registration(repository, path)
    assert admin
    shutil.rmtree(admin)
    shutil.rmtree(path)
    assert archive_worktree(worktree.pk, actor="ada") is None


def test_of_one_that_nothing_is_left_of_no_archive_from_before_its_last_use_is_named(
    worktree: Worktree,
    path: Path,
    repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
):
    # Somebody comes in when it has been archived, so that it is put back.
    seen = iter(["", "", "an editor works in it"])
    with monkeypatch.context() as patched:
        patched.setattr(activity, "workers", lambda path: next(seen))
        assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    assert WorktreeArchive.objects.get().state == WorktreeArchive.State.VERIFIED
    holds.release(holds.acquire_again(worktree.pk, holder="agent").pk)
    admin = worktrees.registration(repository, path)
    assert admin
    shutil.rmtree(admin)
    shutil.rmtree(path)
    assert archive_worktree(worktree.pk, actor="ada") is None


@pytest.mark.parametrize("how", ["held", "pinned", "too large"])
def test_what_keeps_it_is_said_to_whoever_asks(
    worktree: Worktree, settings: Settings, how: str
):
    expected: type[Exception] = WorktreeError
    if how == "held":
        holds.acquire_again(worktree.pk, holder="agent")
    elif how == "pinned":
        Worktree.objects.update(pinned=True)
    else:
        settings.ACW_ARCHIVE_MAX_SIZE = 1024
        Path(worktree.path, "large").write_bytes(os.urandom(2000))
        expected, how = ArchiveTooLarge, "ACW_ARCHIVE_MAX_SIZE"
    with pytest.raises(expected, match=how):
        archive_worktree(worktree.pk, actor="ada")
    assert Path(worktree.path).exists()
    assert Worktree.objects.get().state == Worktree.State.READY


def all_but_readme(
    name: str, *, dir_fd: int | None = None, unlink: Callable[..., None] = os.unlink
) -> None:
    """As where somebody made one file immutable."""
    if name == "README":
        raise PermissionError(1, "Operation not permitted")
    unlink(name, dir_fd=dir_fd)


def test_deleting_goes_on_in_the_next_run_where_something_could_not_be_deleted(
    worktree: Worktree,
    path: Path,
    trash: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
):
    AdminFactory()
    with monkeypatch.context() as broken:
        broken.setattr(os, "unlink", all_but_readme)
        for _ in range(2):
            assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    worktree.refresh_from_db()
    assert worktree.state == Worktree.State.PRUNING
    assert f"trash/{worktree.pk}." in worktree.state_reason
    assert not path.exists()
    (notification,) = told("worktree.prune_blocked")
    assert "all of it is in archive" in notification.body
    assert prune_worktree(worktree.pk) is Outcome.PRUNED
    assert list(trash.parent.iterdir()) == []
    assert WorktreeArchive.objects.count() == LedgerEntry.objects.count() == 1


def test_nobody_waits_for_what_could_not_be_deleted(
    worktree: Worktree, path: Path, trash: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as broken:
        broken.setattr(os, "unlink", all_but_readme)
        prune_worktree(worktree.pk)
    again = holds.acquire_again(worktree.pk, holder="agent")
    assert (again.pk, again.held_by) == (worktree.pk, "agent")
    assert (path / "README").exists()
    assert prune.due().count() == 0
    # What is left in the trash is of its life before, and says nothing of this one.
    (path / "new").touch()
    make_idle(holds.release(worktree.pk), days=31)
    with monkeypatch.context() as broken:
        broken.setattr(os, "unlink", all_but_readme)
        prune_worktree(worktree.pk)
    again = holds.acquire_again(worktree.pk, holder="agent")
    assert (path / "new").exists()
    assert prune_worktree(worktree.pk) is Outcome.NOT_DUE
    assert list(trash.parent.iterdir()) == []


def test_a_root_swapped_for_a_link_empties_nothing(
    worktree: Worktree, path: Path, tmp_path: Path, told: Told
):
    AdminFactory()
    victim = tmp_path / "victim"
    shutil.copytree(path, victim)  # with the .git file, which is what would fool git
    shutil.rmtree(path)
    path.symlink_to(victim)
    assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    assert (victim / "README").exists()
    assert "symbolic link" in told("worktree.prune_blocked")[0].body


@pytest.mark.parametrize("outside", ["/", "{repository}", "{other}/x", "{path}/.."])
def test_a_path_that_is_not_its_own_is_kept_and_told(
    worktree: Worktree, path: Path, repository: Repository, tmp_path: Path, outside: str
):
    named = outside.format(repository=repository.path, other=tmp_path, path=path)
    Worktree.objects.update(path=named)
    assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    assert repository.path.exists()
    assert path.exists()
    assert "not directly below" in Worktree.objects.get().prune_blocked_reason


def test_what_could_not_be_deleted_is_deleted_by_a_later_run_of_any_worktree(
    worktree: Worktree, path: Path, trash: Path, monkeypatch: pytest.MonkeyPatch
):
    other = holds.acquire(worktree.workspace, branch="acw/other", holder="agent")
    with monkeypatch.context() as broken:
        broken.setattr(os, "unlink", all_but_readme)
        prune_worktree(worktree.pk)
        make_idle(worktree, days=1)  # it is wanted, so that nobody waits for the rest
        prune_worktree(worktree.pk)
    assert not Worktree.objects.filter(pk=worktree.pk).exists()
    assert len(list(trash.parent.iterdir())) == 1
    prune_worktree(other.pk)
    assert list(trash.parent.iterdir()) == []
