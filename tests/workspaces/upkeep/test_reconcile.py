from __future__ import annotations

import datetime as dt
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from tests.workspaces.conftest import Told
from tests.workspaces.factories import WorktreeFactory
from tests.workspaces.remote import Remote, commit, git
from tests.workspaces.upkeep.conftest import everything, registered, status
from workspaces import clones, holds, paths
from workspaces.exceptions import GitStopped, NotCloned
from workspaces.models import LedgerEntry, Workspace, WorkspaceHost, Worktree
from workspaces.pruning import trash
from workspaces.repository import Repository
from workspaces.upkeep import breaker, mending, registrations
from workspaces.upkeep import reconcile as reconciliation
from workspaces.upkeep.reconcile import Report, reconcile
from workspaces.upkeep.survey import Action, Found, survey

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("admin")]


def cells(report: Report) -> list[tuple[str, str, str]]:
    return [
        (line.found.cell, line.found.action, line.error)
        for line in report.lines
        if line.found.action is not Action.NOTHING
    ]


def ledger() -> list[str]:
    return list(LedgerEntry.objects.order_by("pk").values_list("action", flat=True))


def strays(repository: Repository) -> list[Path]:
    return sorted(paths.stray_directory(repository.directory).glob("*"))


def test_what_is_as_it_should_be_is_left_alone(worktree: Worktree, told: Told):
    report = reconcile()
    assert (report.workspaces, report.lines, report.stopped) == (1, [], "")
    assert ledger() == []
    assert told("workspace.reconciled") == []


def test_rd_a_directory_that_git_has_forgotten_is_told_of_again(
    worktree: Worktree, path: Path, repository: Repository, told: Told
):
    tip = commit(path)
    (path / "README").write_text("changed\n")
    (path / "new").write_text("new\n")
    before = everything(path)
    shutil.rmtree(registered(repository, path).admin)

    assert cells(reconcile()) == [("RD-", "register", "")]

    assert everything(path) == before
    assert git("rev-parse", "HEAD", cwd=path) == tip
    assert git("status", "--porcelain", cwd=path) == "M README\n?? new"
    assert registered(repository, path).is_ours
    assert ledger() == ["mended"]
    assert len(told("workspace.reconciled")) == 1
    assert cells(reconcile()) == []


def test_rdg_a_git_file_that_is_gone_is_written_again(
    worktree: Worktree, path: Path, told: Told
):
    (path / "new").write_text("new\n")
    before = status(path)
    (path / ".git").unlink()
    assert cells(reconcile()) == [("RDG", "relink", "")]
    assert status(path) == before
    assert told("workspace.reconciled") == []  # nothing was lost


def test_rdg_one_that_was_unlocked_is_locked_again(
    worktree: Worktree, path: Path, repository: Repository
):
    git("worktree", "unlock", str(path), cwd=repository.path)
    assert cells(reconcile()) == [("RDG", "lock", "")]
    assert registered(repository, path).is_ours


def test_rdg_a_directory_that_became_another_repository_is_taken_out_of_use(
    worktree: Worktree, path: Path
):
    (path / ".git").unlink()
    git("init", "--quiet", cwd=path)
    for _ in range(2):
        report = reconcile()
    worktree.refresh_from_db()
    assert worktree.state == Worktree.State.QUARANTINED
    assert cells(report) == []
    assert (path / ".git/HEAD").exists()
    shutil.rmtree(path / ".git")
    reconcile()
    worktree.refresh_from_db()
    assert (worktree.state, worktree.state_reason) == (Worktree.State.READY, "")


def test_rg_a_directory_that_is_gone_is_marked_and_its_registration_kept(
    worktree: Worktree, path: Path, repository: Repository, told: Told
):
    shutil.rmtree(path)
    assert cells(reconcile()) == [("R-G", "miss", "")]
    worktree.refresh_from_db()
    assert worktree.state == Worktree.State.MISSING
    assert "is gone" in worktree.state_reason
    assert registered(repository, path).is_ours
    assert cells(reconcile()) == []
    assert len(told("workspace.reconciled")) == 1


def test_r_one_of_which_nothing_is_left_is_marked_and_an_acquire_brings_it_back(
    worktree: Worktree, path: Path, repository: Repository
):
    tip = commit(path)
    shutil.rmtree(registered(repository, path).admin)
    shutil.rmtree(path)
    assert cells(reconcile()) == [("R--", "miss", "")]
    again = holds.acquire(worktree.workspace, holder="agent", branch=worktree.branch)
    assert again.pk == worktree.pk
    assert git("rev-parse", "HEAD", cwd=path) == tip


def test_a_directory_that_was_away_and_came_back_is_used_again(
    worktree: Worktree, path: Path, tmp_path: Path
):
    (path / "new").write_text("new\n")
    before = status(path)
    path.rename(tmp_path / "away")
    reconcile()
    (tmp_path / "away").rename(path)
    assert cells(reconcile()) == [("RDG", "take_back", "")]
    worktree.refresh_from_db()
    assert (worktree.state, worktree.state_reason) == (Worktree.State.READY, "")
    assert status(path) == before


def test_a_held_one_that_is_gone_stays_its_holders_and_is_told_once(
    workspace: Workspace, tmp_path: Path, told: Told
):
    held = holds.acquire(workspace, holder="agent")
    Path(held.path).rename(tmp_path / "away")
    for _ in range(2):
        reconcile()
    held.refresh_from_db()
    assert (held.held_by, held.state) == ("agent", Worktree.State.READY)
    (notification,) = told("workspace.reconciled")
    assert "agent holds it" in notification.body
    (tmp_path / "away").rename(held.path)
    reconcile()
    held.refresh_from_db()
    assert (held.held_by, held.state_reason) == ("agent", "")


def test_dg_one_whose_row_was_lost_is_put_aside_and_stays_a_worktree(
    worktree: Worktree, path: Path, repository: Repository, told: Told
):
    WorktreeFactory(workspace__host="elsewhere")
    tip = commit(path)
    (path / "new").write_text("new\n")
    git("add", "new", cwd=path)
    before, state = everything(path), status(path)
    worktree.delete()

    assert cells(reconcile()) == [("-DG", "put_aside", "")]

    (stray,) = strays(repository)
    assert everything(stray) == before
    assert status(stray) == state
    assert git("rev-parse", "HEAD", cwd=stray) == tip
    assert not path.exists()
    assert ledger() == ["quarantined"]
    (notification,) = told("workspace.reconciled")
    assert str(stray) in notification.body
    assert cells(reconcile()) == []


def test_dg_what_was_interrupted_between_moving_and_telling_git_is_finished(
    worktree: Worktree, path: Path, repository: Repository
):
    WorktreeFactory(workspace__host="elsewhere")
    worktree.delete()
    stray = paths.stray_directory(repository.directory) / "killed"
    stray.parent.mkdir()
    path.rename(stray)
    assert cells(reconcile()) == [("--G", "repoint", "")]
    assert git("status", "--porcelain", cwd=stray) == ""
    assert cells(reconcile()) == []


@pytest.mark.parametrize("kind", ["directory", "file", "link"])
def test_d_what_is_nobodys_is_put_aside_and_nothing_behind_a_link(
    worktree: Worktree, path: Path, repository: Repository, tmp_path: Path, kind: str
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("keep\n")
    unknown = path.parent / "unknown"
    if kind == "link":
        unknown.symlink_to(outside)
    elif kind == "file":
        unknown.write_text("work\n")
    else:
        unknown.mkdir()
        (unknown / "file").write_text("work\n")
    assert cells(reconcile()) == [("-D-", "put_aside", "")]
    (stray,) = strays(repository)
    assert (stray.is_symlink(), stray.is_file(), stray.is_dir()) == (
        kind == "link",
        kind == "file",
        kind != "file",
    )
    assert (outside / "keep").read_text() == "keep\n"


def test_d_what_waits_in_the_trash_for_no_row_is_put_aside(
    worktree: Worktree, repository: Repository
):
    lost = paths.trash_path(repository.directory, 10**9)
    lost.mkdir(parents=True)
    (lost / "file").write_text("work\n")
    assert cells(reconcile()) == [("-D-", "put_aside", "")]
    (stray,) = strays(repository)
    assert (stray / "file").read_text() == "work\n"


def test_what_is_in_an_archive_and_being_deleted_is_left_to_that(
    worktree: Worktree, repository: Repository
):
    trash.archived(repository, 10**9, 1).mkdir(parents=True)
    assert cells(reconcile()) == []


def test_g_a_registration_alone_is_removed_when_what_only_it_has_is_kept(
    worktree: Worktree, path: Path, repository: Repository
):
    WorktreeFactory(workspace__host="elsewhere")
    git("checkout", "--quiet", "--detach", cwd=path)
    amended = commit(path, "first")
    git("commit", "--quiet", "--amend", "--message", "again", cwd=path)
    last = git("rev-parse", "HEAD", cwd=path)
    (path / "staged").write_text("only staged\n")
    git("add", "staged", cwd=path)
    worktree.delete()
    shutil.rmtree(path)

    assert cells(reconcile()) == [("--G", "unregister", "")]

    assert registrations.all_of(repository) == []
    git("reflog", "expire", "--expire=now", "--all", cwd=repository.path)
    git("gc", "--quiet", "--prune=now", cwd=repository.path)
    for lost in (amended, last):
        assert git("cat-file", "-t", lost, cwd=repository.path) == "commit"
    branches = git("branch", "--list", "acw/rescued-*staged*", cwd=repository.path)
    (branch,) = branches.split()
    shown = git("show", f"{branch}:staged", cwd=repository.path)
    assert shown == "only staged"
    assert ledger() == ["quarantined"]
    assert cells(reconcile()) == []


def test_g_an_agents_own_registration_elsewhere_is_left_alone(
    worktree: Worktree, path: Path, repository: Repository, tmp_path: Path
):
    git("worktree", "add", "--quiet", "--detach", str(tmp_path / "own"), cwd=path)
    own = str(tmp_path / "own")
    git("worktree", "lock", "--reason", "acw or so", own, cwd=path)
    shutil.rmtree(own)
    assert cells(reconcile()) == []
    assert len(registrations.all_of(repository)) == 2


def test_what_was_interrupted_is_finished_or_undone(
    worktree: Worktree, path: Path, workspace: Workspace, repository: Repository
):
    half = holds.acquire(workspace, holder="other", branch="half")
    holds.release(half.pk)
    Worktree.objects.filter(pk=half.pk).update(state=Worktree.State.CREATING)
    Worktree.objects.filter(pk=worktree.pk).update(state=Worktree.State.PRUNING)
    trash.put_in(repository, worktree.pk, path)
    assert [action for _, action, _ in cells(reconcile())] == ["finish", "finish"]
    assert not Worktree.objects.filter(pk=half.pk).exists()
    assert not Path(half.path).exists()
    worktree.refresh_from_db()
    assert worktree.state == Worktree.State.READY
    assert git("status", "--porcelain", cwd=path) == ""
    assert cells(reconcile()) == []


def test_a_workspace_that_is_worked_on_is_passed_by(
    worktree: Worktree, path: Path, repository: Repository
):
    shutil.rmtree(path)
    with repository.locked(wait=dt.timedelta(0)):
        report = reconcile()
    assert (report.busy, report.lines) == (["demo"], [])
    worktree.refresh_from_db()
    assert worktree.state == Worktree.State.READY


def test_a_dry_run_says_what_differs_and_changes_nothing(
    worktree: Worktree, path: Path, repository: Repository
):
    (path.parent / "unknown").mkdir()
    report = reconcile(dry_run=True)
    assert cells(report) == [("-D-", "put_aside", "")]
    assert (path.parent / "unknown").exists()
    assert not WorkspaceHost.objects.exists()
    assert ledger() == []


def test_a_clone_that_is_gone_is_told_and_is_well_when_it_is_back(
    worktree: Worktree, repository: Repository, told: Told
):
    reconcile()
    away = repository.path.with_name("away")
    repository.path.rename(away)
    for _ in range(2):
        assert reconcile().stopped == ""
    workspace = Workspace.objects.get()
    assert workspace.state == Workspace.State.FAILED
    assert len(told("workspace.reconciled")) == 1
    with pytest.raises(NotCloned, match="its clone is gone from the disk"):
        holds.acquire(workspace, holder="agent")
    away.rename(repository.path)
    assert reconcile().clones_back == ["demo"]
    workspace.refresh_from_db()
    assert (workspace.state, workspace.clone_progress) == (Workspace.State.READY, "")


def test_a_directory_of_no_workspace_is_named_and_left_alone(
    worktree: Worktree, repository: Repository
):
    other = repository.directory.parent / "nobodys"
    other.mkdir()
    assert reconcile().unknown == ["nobodys"]
    assert other.exists()
    assert WorkspaceHost.objects.get().found["unknown"] == ["nobodys"]


def test_what_cannot_be_mended_is_named_and_does_not_keep_the_rest(
    worktree: Worktree, path: Path, repository: Repository
):
    outside = repository.directory / "outside"
    outside.mkdir()
    paths.stray_directory(repository.directory).symlink_to(outside)
    (path.parent / "unknown").mkdir()
    (path / ".git").unlink()
    report = reconcile()
    errors = {line.found.action: line.error for line in report.lines}
    assert "symbolic link" in errors[Action.PUT_ASIDE]
    assert errors[Action.RELINK] == ""
    assert os.listdir(outside) == []
    assert "symbolic link" in WorkspaceHost.objects.get().found["failed"][0]


def test_a_clone_that_cannot_be_looked_at_is_named_and_does_not_keep_the_rest(
    worktree: Worktree,
    path: Path,
    repository: Repository,
    remote: Remote,
    tmp_path: Path,
):
    other = clones.add_workspace("other", remote.url)
    (Path(other.path).parent / "worktrees" / "unknown").mkdir(parents=True)
    (repository.path / "worktrees").rename(tmp_path / "moved")
    (repository.path / "worktrees").symlink_to(tmp_path / "moved")
    report = reconcile()
    (failed,) = report.failed
    assert failed.startswith("demo: ")
    assert "symbolic link" in failed
    assert cells(report) == [("-D-", "put_aside", "")]


def test_what_was_done_before_the_worker_stops_is_told(
    worktree: Worktree, path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
):
    (path.parent / "unknown").mkdir()
    mend = mending.mend

    def stopped(*args: Any, **kwargs: Any) -> str:
        mend(*args, **kwargs)
        monkeypatch.setattr(mending, "mend", ending)
        return "it was moved"

    def ending(*args: Any, **kwargs: Any) -> str:
        raise GitStopped("rev-list", "was ended because the caller stops")

    (path.parent / "unknown2").mkdir()
    monkeypatch.setattr(mending, "mend", stopped)
    with pytest.raises(GitStopped):
        reconcile()
    (notification,) = told("workspace.reconciled")
    assert "it was moved" in notification.body


def test_where_more_is_gone_than_was_counted_the_next_pass_counts_anew(
    worktree: Worktree,
    path: Path,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
):
    other = holds.acquire(workspace, holder="other", branch="other")
    holds.release(other.pk)
    shutil.rmtree(path)

    def counted(count: object) -> str:
        shutil.rmtree(other.path)
        return ""

    with monkeypatch.context() as patched:
        patched.setattr(breaker, "too_many", counted)
        report = reconcile()
    assert (report.busy, report.lines) == (["demo"], [])
    assert not Worktree.objects.filter(state=Worktree.State.MISSING).exists()
    assert len(reconcile().lines) == 2


def test_planted_configuration_keeps_git_from_being_run(
    worktree: Worktree, path: Path, repository: Repository
):
    shutil.rmtree(registered(repository, path).admin)
    git("config", "core.fsmonitor", "/bin/false", cwd=repository.path)
    ((cell, _, error),) = cells(reconcile())
    assert cell == "RD-"
    assert "core.fsmonitor" in error
    assert registrations.all_of(repository) == []


def test_only_the_workspace_that_was_named_is_looked_at(
    worktree: Worktree, path: Path, remote: Remote
):
    other = clones.add_workspace("other", remote.url)
    (Path(other.path).parent / "worktrees").mkdir(exist_ok=True)
    (Path(other.path).parent / "worktrees" / "unknown").mkdir()
    assert reconcile(name="demo").lines == []
    assert len(reconcile(name="other").lines) == 1


def test_a_registration_whose_name_is_no_text_is_put_aside_like_any_other(
    worktree: Worktree, path: Path, repository: Repository, told: Told
):
    admin = os.fsencode(repository.path / "worktrees") + b"/odd\xff\nname"
    os.mkdir(admin)
    for name, line in {
        "gitdir": str(path.parent / "gone" / ".git"),
        "locked": "acw",
        "HEAD": "ref: refs/heads/acw/gone",
        "commondir": "../..",
    }.items():
        Path(os.fsdecode(admin), name).write_text(f"{line}\n")
    assert cells(reconcile()) == [("--G", "unregister", "")]
    (notification,) = told("workspace.reconciled")
    assert "\nname" not in notification.body
    assert cells(reconcile()) == []


def test_a_directory_whose_name_is_as_long_as_may_be_is_put_aside(
    worktree: Worktree, path: Path, repository: Repository
):
    (path.parent / ("ä" * 127)).mkdir()
    assert cells(reconcile()) == [("-D-", "put_aside", "")]
    (stray,) = strays(repository)
    assert stray.name.startswith("ää")


def test_a_worktree_that_cannot_be_looked_into_is_out_of_use_and_does_not_keep_the_rest(
    worktree: Worktree, path: Path, monkeypatch: pytest.MonkeyPatch
):
    (path.parent / "unknown").mkdir()
    link_of = registrations.link_of

    def refused(directory: Path, admin: Path | None) -> registrations.Link:
        raise PermissionError(13, "Permission denied", str(directory / ".git"))

    monkeypatch.setattr(registrations, "link_of", refused)
    report = reconcile()
    assert report.failed == []
    assert cells(report) == [("RDG", "quarantine", ""), ("-D-", "put_aside", "")]
    worktree.refresh_from_db()
    assert "Permission denied" in worktree.state_reason
    monkeypatch.setattr(registrations, "link_of", link_of)
    assert cells(reconcile()) == [("RDG", "take_back", "")]


def test_why_a_held_one_is_out_of_use_is_told_once_however_long_it_is(
    workspace: Workspace, told: Told, monkeypatch: pytest.MonkeyPatch
):
    holds.acquire(workspace, holder="agent")

    def refused(directory: Path, admin: Path | None) -> registrations.Link:
        raise PermissionError(13, "Permission denied", "deep/" * 200)

    monkeypatch.setattr(registrations, "link_of", refused)
    for _ in range(2):
        reconcile()
    assert len(told("workspace.reconciled")) == 1


def test_all_that_was_put_aside_may_be_deleted_at_once(
    worktree: Worktree, workspace: Workspace, repository: Repository
):
    unknown = []
    for number in range(breaker.FEWEST):
        other = holds.acquire(workspace, holder="agent", branch=f"other-{number}")
        unknown.append(other.pk)
    Worktree.objects.filter(pk__in=unknown).delete()
    reconcile(force=True)
    for stray in strays(repository):
        shutil.rmtree(stray)
    report = reconcile()
    assert report.stopped == ""
    assert [action for _, action, _ in cells(report)] == ["unregister"] * 3
    assert len(registrations.all_of(repository)) == 1


def test_a_workspace_that_was_named_is_counted_among_all_of_the_host(
    worktree: Worktree, workspace: Workspace
):
    WorktreeFactory.create_batch(breaker.FEWEST * 5, workspace__host=workspace.host)
    for number in range(breaker.FEWEST):
        held = holds.acquire(workspace, holder="agent", branch=f"other-{number}")
        shutil.rmtree(held.path)
    report = reconcile(name=workspace.name)
    assert report.stopped == ""
    assert [action for _, action, _ in cells(report)] == ["miss"] * 3


def test_what_nobody_foresaw_of_one_does_not_keep_the_rest(
    worktree: Worktree,
    path: Path,
    repository: Repository,
    remote: Remote,
    monkeypatch: pytest.MonkeyPatch,
):
    other = clones.add_workspace("other", remote.url)

    def odd(looked: Repository, rows: list[Worktree]) -> list[Found]:
        if looked.directory == Path(other.path).parent:
            raise ValueError("odd clone")
        return survey(looked, rows)

    mend = mending.mend

    def odd_one(*args: Any, **options: Any) -> str:
        if args[2].path.name == "a":
            raise UnicodeError("odd directory")
        return mend(*args, **options)

    monkeypatch.setattr(reconciliation, "survey", odd)
    monkeypatch.setattr(mending, "mend", odd_one)
    (path.parent / "a").mkdir()
    (path.parent / "b").mkdir()
    report = reconcile()
    assert report.failed == ["other: ValueError: odd clone"]
    errors = {line.found.name: line.error for line in report.lines}
    assert errors == {"a": "UnicodeError: odd directory", "b": ""}


def test_a_database_that_goes_away_ends_the_pass(
    worktree: Worktree, path: Path, monkeypatch: pytest.MonkeyPatch
):
    def away(*args: Any) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(reconciliation, "survey", away)
    with pytest.raises(OperationalError):
        reconcile()
