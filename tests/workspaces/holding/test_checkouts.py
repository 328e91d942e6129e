"""What acquire finds in the place of a worktree, and what it makes of that: nothing is lost."""

from __future__ import annotations

import datetime as dt
import hashlib
import shutil
from pathlib import Path

import pytest

from tests.workspaces.factories import WorktreeFactory
from tests.workspaces.remote import Remote, commit, git
from tests.workspaces.witness import Tripwire
from workspaces import holds, paths, seal, worktrees
from workspaces.exceptions import (
    BranchInUse,
    ConfigTampered,
    GitStopped,
    OutsideDataDirectory,
)
from workspaces.fetch import fetch_workspace
from workspaces.holding import checkouts
from workspaces.models import LedgerEntry, Workspace, Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db

NOT_LONG = dt.timedelta(seconds=1)


@pytest.fixture
def place(worktree: Worktree) -> Path:
    """The directory of the worktree, which nobody holds."""
    return Path(worktree.path)


def acquired(workspace: Workspace) -> Worktree:
    return holds.acquire(workspace, branch="acw/work", holder="other")


def status(place: Path) -> str:
    return git("status", "--porcelain", cwd=place)


def strays(repository: Repository) -> list[Path]:
    return sorted(paths.stray_directory(repository.directory).glob("*"))


def ledger() -> list[str]:
    return list(LedgerEntry.objects.order_by("pk").values_list("action", flat=True))


def test_a_directory_that_is_gone_is_checked_out_again(
    workspace: Workspace, worktree: Worktree, place: Path
):
    mine = commit(place)
    shutil.rmtree(place)
    Worktree.objects.update(state=Worktree.State.MISSING, state_reason="it is gone")
    again = acquired(workspace)
    assert again.pk == worktree.pk
    assert (again.state, again.state_reason) == (Worktree.State.READY, "")
    assert git("rev-parse", "HEAD", cwd=place) == mine
    assert status(place) == ""
    assert ledger() == ["mended"]


def test_what_was_staged_and_where_head_was_come_back_with_it(
    workspace: Workspace, place: Path
):
    git("checkout", "--quiet", "--detach", cwd=place)
    lost = commit(place, "on-no-branch")
    (place / "README").write_text("staged\n")
    git("add", "README", cwd=place)
    shutil.rmtree(place)
    acquired(workspace)
    assert git("rev-parse", "HEAD", cwd=place) == lost
    assert (place / "README").read_text() == "staged\n"
    assert (place / "on-no-branch").exists()
    assert status(place) == "M  README"


def test_a_merge_in_progress_is_in_progress_still(workspace: Workspace, place: Path):
    commit(place, "file", "ours\n")
    git("checkout", "--quiet", "-b", "theirs", "HEAD~", cwd=place)
    commit(place, "file", "theirs\n")
    git("checkout", "--quiet", "acw/work", cwd=place)
    with pytest.raises(Exception, match="merge"):
        git("merge", "--quiet", "theirs", cwd=place)
    shutil.rmtree(place)
    acquired(workspace)
    assert git("rev-parse", "MERGE_HEAD", cwd=place) == (
        git("rev-parse", "theirs", cwd=place)
    )
    git("checkout", "--ours", "--", "file", cwd=place)
    assert (place / "file").read_text() == "ours\n"


def test_without_an_index_it_is_what_head_has(
    workspace: Workspace, place: Path, admin: Path
):
    mine = commit(place)
    (admin / "index").unlink()
    shutil.rmtree(place)
    acquired(workspace)
    assert git("rev-parse", "HEAD", cwd=place) == mine
    assert status(place) == ""


def test_a_lock_on_the_index_that_somebody_left_stays_and_is_no_obstacle(
    workspace: Workspace, place: Path, admin: Path
):
    shutil.rmtree(place)
    (admin / "index.lock").touch()
    acquired(workspace)
    assert (admin / "index.lock").exists()
    assert (place / "README").read_text() == "hello\n"


def test_files_of_a_directory_that_git_has_forgotten_stay_in_place(
    workspace: Workspace, repository: Repository, place: Path, admin: Path
):
    mine = commit(place)
    (place / "untracked").write_text("precious")
    shutil.rmtree(admin)
    again = acquired(workspace)
    assert (place / "untracked").read_text() == "precious"
    assert git("rev-parse", "HEAD", cwd=place) == mine
    assert status(place) == "?? untracked"
    locked = worktrees.registration(repository, place)
    assert locked
    assert (locked / "locked").read_text().strip() == f"acw:{again.pk}:2"


@pytest.mark.parametrize("kind", ["other directory", "repository", "file"])
def test_what_stands_in_its_place_is_put_aside_and_not_deleted(
    workspace: Workspace,
    repository: Repository,
    worktree: Worktree,
    place: Path,
    kind: str,
):
    mine = commit(place)
    shutil.rmtree(place)
    if kind == "file":
        place.write_text("precious")
    else:
        place.mkdir()
        (place / "file").write_text("precious")
    if kind == "repository":
        git("init", "--quiet", str(place))
    again = acquired(workspace)
    (moved,) = strays(repository)
    kept = moved if kind == "file" else moved / "file"
    assert kept.read_text() == "precious"
    assert git("rev-parse", "HEAD", cwd=place) == mine
    assert again.state_reason == f"what stood in its place is in {moved} now"
    assert ledger() == ["quarantined", "mended"]
    entry = LedgerEntry.objects.filter(worktree_id=worktree.pk).last()
    assert entry
    assert entry.data["moved_to"] == str(moved)


def test_a_directory_that_says_it_is_another_worktree_is_put_aside(
    workspace: Workspace, repository: Repository, place: Path
):
    other = holds.acquire(workspace, holder="stranger")
    link = Path(other.path, ".git").read_text()
    (place / ".git").write_text(link)
    (place / "untracked").write_text("precious")
    acquired(workspace)
    (moved,) = strays(repository)
    assert (moved / "untracked").read_text() == "precious"
    assert status(place) == ""
    assert git("branch", "--show-current", cwd=place) == "acw/work"
    assert git("branch", "--show-current", cwd=Path(other.path)) == other.branch


def test_commits_of_a_registration_that_is_damaged_get_branches(
    workspace: Workspace, repository: Repository, place: Path, admin: Path
):
    first = commit(place, "first")
    git("checkout", "--quiet", "--detach", cwd=place)
    amended = commit(place, "amended")
    git("commit", "--quiet", "--amend", "--message", "again", cwd=place)
    last = git("rev-parse", "HEAD", cwd=place)
    shutil.rmtree(place)
    (admin / "index").write_text("no index")
    again = acquired(workspace)
    assert git("rev-parse", "HEAD", cwd=place) == first
    branches = git("branch", "--list", "acw/rescued-*", cwd=place).split()
    kept = {git("rev-parse", name, cwd=place) for name in branches}
    assert kept == {amended, last}
    assert {name.startswith(f"acw/rescued-{again.pk}-") for name in branches} == {True}
    (moved,) = strays(repository)
    assert (moved / "index").read_text() == "no index"
    assert "what git kept of it" in again.state_reason
    # No agent's gc can take them from now on.
    git("reflog", "expire", "--expire=now", "--all", cwd=place)
    git("gc", "--quiet", "--prune=now", cwd=place)
    for sha in (first, amended, last):
        assert git("cat-file", "-t", sha, cwd=place) == "commit"


def test_an_index_that_an_agent_has_written_leads_nowhere_else(
    workspace: Workspace, repository: Repository, place: Path, admin: Path
):
    plain = admin / "index"
    (place / "XX-evil").write_text("evil")
    git("add", "XX-evil", cwd=place)
    shutil.rmtree(place)
    plain.write_bytes(with_name(plain.read_bytes(), b"XX-evil", b"../evil"))
    assert b"../evil" in plain.read_bytes()
    acquired(workspace)
    assert not (place.parent / "evil").exists()
    assert (place / "README").exists()
    assert len(strays(repository)) == 1


def with_name(index: bytes, name: bytes, other: bytes) -> bytes:
    """The index with another name in it, as long, and in order still."""
    assert index.count(name) == 1
    assert len(name) == len(other)
    body = index[:-20].replace(name, other)
    return body + hashlib.sha1(body).digest()  # noqa: S324 (git's own)


def test_no_program_of_the_repository_is_run(
    workspace: Workspace,
    repository: Repository,
    place: Path,
    tripwire: Tripwire,
):
    program = str(tripwire.program)
    (place / ".gitattributes").write_text("* filter=lfs\n")
    git("add", ".", cwd=place)
    git("commit", "--quiet", "-m", "attributes", cwd=place)
    git("config", "filter.lfs.smudge", program, cwd=repository.path)
    with pytest.raises(ConfigTampered):
        seal.check(workspace, repository)
    workspace.refresh_from_db()
    seal.approve(workspace, actor="ada")
    workspace.refresh_from_db()
    shutil.rmtree(place)
    acquired(workspace)
    assert (place / "README").read_text() == "hello\n"
    assert tripwire.fired == ""


def test_a_caller_who_stops_leaves_nothing_half_checked_out_and_holds_nothing(
    workspace: Workspace, worktree: Worktree, place: Path, admin: Path
):
    shutil.rmtree(place)
    with pytest.raises(GitStopped):
        holds.acquire(workspace, branch="acw/work", holder="other", stop=lambda: True)
    worktree.refresh_from_db()
    assert worktree.held_by is None
    assert not place.exists()
    assert not (place.parent.parent / ".making").exists()
    assert admin.is_dir()


def test_what_somebody_who_was_killed_had_half_checked_out_is_made_whole(
    workspace: Workspace, repository: Repository, place: Path, admin: Path
):
    mine = commit(place)
    shutil.rmtree(place)
    (repository.directory / ".making").mkdir()
    (repository.directory / ".making" / "half").touch()
    acquired(workspace)
    assert status(place) == ""
    assert not (repository.directory / ".making").exists()
    holds.release(Worktree.objects.get().pk)
    # And where git had kept nothing: its first step is done, its second is not.
    shutil.rmtree(place)
    shutil.rmtree(admin)
    made = ("add", "--quiet", "--no-checkout", "--lock", "--reason", "acw:making")
    git("worktree", *made, str(place), "acw/work", cwd=repository.path)
    assert status(place) != ""
    again = acquired(workspace)
    assert status(place) == ""
    assert git("rev-parse", "HEAD", cwd=place) == mine
    locked = worktrees.registration(repository, place)
    assert locked
    assert (locked / "locked").read_text() == f"acw:{again.pk}:{again.fencing_no}\n"


def test_a_branch_that_another_worktree_has_by_now_is_let_go(
    workspace: Workspace,
    repository: Repository,
    worktree: Worktree,
    place: Path,
    admin: Path,
):
    shutil.rmtree(place)
    shutil.rmtree(admin)
    other = holds.acquire(workspace, holder="stranger")
    git("checkout", "--quiet", "acw/work", cwd=Path(other.path))
    with pytest.raises(BranchInUse):
        acquired(workspace)
    worktree.refresh_from_db()
    assert worktree.held_by is None


def test_one_whose_place_is_a_link_is_refused(
    workspace: Workspace, repository: Repository, place: Path, tmp_path: Path
):
    shutil.rmtree(place)
    place.symlink_to(tmp_path)
    worktree = Worktree.objects.get()
    with (
        repository.locked(wait=NOT_LONG),
        pytest.raises(OutsideDataDirectory),
    ):
        checkouts.make_whole(repository, worktree, stop=None)
    assert place.is_symlink()
    assert strays(repository) == []


def test_what_is_whole_is_left_alone(repository: Repository, worktree: Worktree):
    before = Path(worktree.path).stat().st_mtime_ns
    with repository.locked(wait=NOT_LONG):
        checkouts.make_whole(repository, worktree, stop=None)
    assert Path(worktree.path).stat().st_mtime_ns == before
    assert ledger() == []


@pytest.mark.parametrize("ahead", [False, True], ids=["as the remote", "ahead"])
def test_a_branch_that_was_made_for_one_that_was_never_handed_out_goes_with_it(
    workspace: Workspace,
    repository: Repository,
    remote: Remote,
    monkeypatch: pytest.MonkeyPatch,
    ahead: bool,
):
    with monkeypatch.context() as patched:
        for name in ("discard", "_delete_branch"):  # as if it were killed
            patched.setattr(worktrees, name, lambda *_, **__: None)
        patched.setattr(worktrees, "_check_out", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            holds.acquire(workspace, branch="topic", holder="agent")
    row = Worktree.objects.get()
    assert row.state == Worktree.State.CREATING
    mine = commit(Path(row.path)) if ahead else ""
    new = remote.push("later")
    fetch_workspace(workspace)
    again = holds.acquire(workspace, branch="topic", holder="agent")
    assert again.pk != row.pk
    assert again.state_reason == ""
    head = git("rev-parse", "HEAD", cwd=Path(again.path))
    assert head == (mine or new)


def test_a_branch_that_was_there_before_stays_when_a_creation_is_discarded(
    workspace: Workspace, repository: Repository
):
    git("branch", "topic", "origin/main", cwd=repository.path)
    left = WorktreeFactory(
        workspace=workspace, branch="topic", state=Worktree.State.CREATING
    )
    checkouts.discard_interrupted(repository, left)
    assert repository.local_branch("topic") is not None


def test_what_interrupted_calls_have_left_beside_worktrees_is_swept(
    repository: Repository,
):
    for name in (".making", ".registering"):
        (repository.directory / name).mkdir()
        (repository.directory / name / "half").touch()
    checkouts.sweep(repository)
    assert not list(repository.directory.glob(".*"))
