from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.remote import Remote, commit, git
from tests.workspaces.witness import Tripwire, plant
from workspaces.exceptions import (
    CloneMissing,
    GitFailed,
    GitStopped,
    InvalidName,
    RepositoryBusy,
)
from workspaces.models import Worktree
from workspaces.plumbing import clone_files
from workspaces.repository import Repository, StartPoints

pytestmark = pytest.mark.django_db

AT_ONCE = dt.timedelta(0)


def fetch(repository: Repository, remote: Remote) -> int:
    return repository.fetch(remote.url, timeout=None, stop=None)


def test_the_remotes_branches_are_kept_apart_from_the_agents(
    repository: Repository, remote: Remote
):
    head = git("rev-parse", "main", cwd=remote.path)
    assert repository.remote_branch("main") == head
    assert repository.local_branch("main") is None


def test_a_fetch_brings_what_is_new_and_counts_it(
    repository: Repository, remote: Remote
):
    assert fetch(repository, remote) == 0
    new = remote.push("new")
    remote.push("other", branch="topic")
    assert fetch(repository, remote) == 2
    assert repository.remote_branch("main") == new


def test_a_forced_push_is_followed(repository: Repository, remote: Remote):
    git("checkout", "--quiet", "--orphan", "fresh", cwd=remote.work)
    forced = remote.push("unrelated")
    fetch(repository, remote)
    assert repository.remote_branch("main") == forced


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
@pytest.mark.parametrize(("old", "new"), [("foo", "foo/bar"), ("foo/bar", "foo")])
def test_a_branch_may_make_way_for_one_below_or_above_it(
    repository: Repository, remote: Remote, old: str, new: str, *, packed: bool
):
    remote.push("a", branch=old)
    fetch(repository, remote)
    if packed:
        for directory in (repository.path, repository.control):
            git("pack-refs", "--all", cwd=directory)
    remote.delete_branch(old)
    remote.push("b", branch=new)
    fetch(repository, remote)
    assert repository.remote_branch(old) is None
    assert repository.remote_branch(new) is not None


def test_branches_below_head_are_left_out_and_keep_no_other_from_coming(
    repository: Repository, remote: Remote, tmp_path: Path
):
    git("update-ref", "refs/heads/HEAD/x", "main", cwd=remote.path)
    new = remote.push("new")
    assert repository.fetch(remote.url, timeout=None, stop=None) == 1
    assert repository.fetch(remote.url, timeout=None, stop=None) == 0
    another = Repository(tmp_path / "another")
    another.directory.mkdir()
    another.create(remote.url)
    another.fetch(remote.url, timeout=None, stop=None)
    assert another.find_default_branch(remote.url) == "main"
    for clone in (repository, another):
        assert clone.remote_branch("main") == new
        assert clone.remote_branch("HEAD/x") is None


def test_what_a_loss_of_power_leaves_of_a_reference_is_mended_by_the_next_fetch(
    repository: Repository, remote: Remote
):
    reference = repository.path / "refs/remotes/origin/main"
    log = repository.path / "logs/refs/remotes/origin/main"
    for what in ("loose", "packed"):
        if what == "packed":
            git("pack-refs", "--all", cwd=repository.path)
        new = remote.push(what)
        repository.fetch(remote.url, timeout=None, stop=None)
        for left in (b"", b"\0" * 41, new[:20].encode()):
            reference.write_bytes(left)
            log.write_bytes(b"\0" * len(left))
            assert repository.remote_branch("main") != new
            assert repository.fetch(remote.url, timeout=None, stop=None) == 1
            assert repository.remote_branch("main") == new
            assert git("rev-parse", "origin/main", cwd=repository.path) == new


def test_agents_push_to_another_remote_too_unless_they_have_chosen_one(
    repository: Repository, remote: Remote
):
    def origin() -> str:
        return git("remote", "get-url", "origin", cwd=repository.path)

    repository.follow_url("https://git.example/a")
    assert origin() == "https://git.example/a"
    # What it was is known to a control directory that is made anew.
    (repository.control / "config").unlink()
    repository.fetch(remote.url, timeout=None, stop=None)
    repository.follow_url("https://git.example/b")
    assert origin() == "https://git.example/b"
    git("remote", "set-url", "origin", "git@git.example:mine", cwd=repository.path)
    repository.follow_url("https://git.example/c")
    assert origin() == "git@git.example:mine"


def test_a_fetch_never_touches_what_agents_have(
    repository: Repository, worktree: Worktree, remote: Remote
):
    remote.push("x", branch="acw/work")
    fetch(repository, remote)
    mine = commit(Path(worktree.path))
    remote.delete_branch("acw/work")
    fetch(repository, remote)
    assert repository.local_branch("acw/work") == mine
    assert git("rev-parse", "HEAD", cwd=Path(worktree.path)) == mine


def test_what_the_repository_says_of_its_remote_is_not_used(
    repository: Repository, remote: Remote, tmp_path: Path
):
    tripwire = Tripwire(tmp_path)
    program = str(tripwire.program)
    for key, value in {
        "remote.origin.url": "/nowhere",
        "remote.origin.uploadpack": program,
        f"remote.{remote.url}.uploadpack": program,
        "core.fsmonitor": program,
    }.items():
        git("config", key, value, cwd=repository.path)
    plant(repository.path / "hooks" / "reference-transaction", program)
    new = remote.push("new")
    fetch(repository, remote)
    assert repository.remote_branch("main") == new
    assert tripwire.fired == ""


def test_the_fetch_of_a_clone_as_it_was_made_is_one_process(
    repository: Repository, remote: Remote, programs: Path, tmp_path: Path
):
    real = shutil.which("git")
    log = tmp_path / "commands"
    remote.push("new")
    plant(programs / "git", f'echo "$2" >> {log}', f'exec {real} "$@"')
    assert fetch(repository, remote) == 1
    assert repository.has_remote_branch("main")
    assert log.read_text() == "fetch\n"


def test_branches_that_are_many_or_odd_are_counted_all_the_same(
    repository: Repository, remote: Remote, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(clone_files, "MOST_REFS", 1)
    remote.push("one")
    remote.push("two", branch="topic")
    assert fetch(repository, remote) == 2
    remote.delete_branch("topic")
    assert fetch(repository, remote) == 1


def test_a_branch_of_the_remote_is_known_packed_or_not(
    repository: Repository, remote: Remote
):
    assert repository.has_remote_branch("main")
    repository.run(["pack-refs", "--all"])
    assert repository.has_remote_branch("main")
    assert not repository.has_remote_branch("nothing")
    assert not repository.has_remote_branch("../origin/main")


def test_no_tags_and_no_fetch_head_are_written(repository: Repository, remote: Remote):
    git("tag", "v1", cwd=remote.work)
    git("push", "--quiet", "origin", "v1", cwd=remote.work)
    fetch(repository, remote)
    assert git("tag", cwd=repository.path) == ""
    assert not (repository.path / "FETCH_HEAD").exists()


def test_a_sibling_that_was_fetched_serves_another_without_the_remote(
    repository: Repository, remote: Remote, tmp_path: Path, settings: Settings
):
    sibling = Repository(tmp_path / "sibling")
    sibling.directory.mkdir()
    sibling.create(remote.url)
    new = remote.push("new")
    remote.push("other", branch="topic")
    assert fetch(repository, remote) == 2
    remote.vanish()
    settings.ACW_GIT_PROTOCOLS = ["https"]
    assert sibling.take_from(repository, timeout=None, stop=None) == 2
    assert sibling.remote_branch("main") == new
    assert git("fsck", "--connectivity-only", cwd=sibling.path) == ""
    assert sibling.take_from(repository, timeout=None, stop=None) == 0


def test_nothing_of_a_siblings_agents_comes_with_it(
    repository: Repository, remote: Remote, worktree: Worktree, tmp_path: Path
):
    mine = commit(Path(worktree.path))
    git("update-ref", "refs/remotes/origin/mine", mine, cwd=repository.path)
    sibling = Repository(tmp_path / "sibling")
    sibling.directory.mkdir()
    sibling.create(remote.url)
    sibling.take_from(repository, timeout=None, stop=None)
    assert not sibling.has_remote_branch("mine")
    assert sibling.commit_of(mine) is None


def test_a_fetch_of_nothing_fails(repository: Repository, remote: Remote):
    remote.vanish()
    with pytest.raises(GitFailed, match="does not appear to be a git repository"):
        fetch(repository, remote)


def test_a_fetch_stops_when_asked(repository: Repository, remote: Remote):
    with pytest.raises(GitStopped):
        repository.fetch(remote.url, timeout=None, stop=lambda: True)


def test_the_default_branch_is_asked_for(repository: Repository, remote: Remote):
    assert repository.find_default_branch(remote.url) == "main"
    assert git("rev-parse", "--abbrev-ref", "origin/HEAD", cwd=repository.path) == (
        "origin/main"
    )


@pytest.mark.parametrize("head", ["refs/heads/nothing", "refs/heads/-x"])
def test_a_default_branch_that_cannot_be_checked_out_is_none(
    repository: Repository, remote: Remote, head: str
):
    git("symbolic-ref", "HEAD", head, cwd=remote.path)
    assert repository.find_default_branch(remote.url) == ""


def test_a_remote_without_a_current_branch_has_no_default(
    repository: Repository, remote: Remote
):
    git("update-ref", "--no-deref", "HEAD", "refs/heads/main", cwd=remote.path)
    assert repository.find_default_branch(remote.url) == ""


@pytest.mark.parametrize(
    "branch", ["main", "feature/login", "a.b", "über", "x@y", "a-b_c+d", "acw/0"]
)
def test_a_name_that_git_accepts_is_a_branch(repository: Repository, branch: str):
    repository.check_branch(branch)


@pytest.mark.parametrize(
    "branch",
    [
        "",
        "-x",
        "--upload-pack=x",
        "HEAD",
        "a b",
        "a..b",
        "a/",
        "/a",
        "a//b",
        "a.lock",
        "a~1",
        "a^",
        "a:b",
        "a?",
        "a*",
        "a[",
        "a\\b",
        "@{-1}",
        "a@{u}",
        ".a",
        "a\n",
        "a\x7f",
        "a\0b",
        "x" * 201,
    ],
)
def test_every_other_name_is_refused(repository: Repository, branch: str):
    with pytest.raises(InvalidName, match="branch name"):
        repository.check_branch(branch)


def test_the_lock_keeps_a_second_one_out_and_lets_fetches_be(repository: Repository):
    with repository.locked(wait=AT_ONCE):
        with repository.locked_for_fetch(wait=AT_ONCE):
            pass
        with pytest.raises(RepositoryBusy), repository.locked(wait=AT_ONCE):
            pass


def test_without_the_clone_the_lock_is_not_given(repository: Repository):
    shutil.rmtree(repository.path)
    with pytest.raises(CloneMissing), repository.locked(wait=AT_ONCE):
        pass
    with pytest.raises(CloneMissing), repository.locked_for_fetch(wait=AT_ONCE):
        pass


def test_where_a_worktree_may_begin(
    repository: Repository, worktree: Worktree, remote: Remote
):
    topic = remote.push("x", branch="täpic")
    repository.fetch(remote.url, timeout=None, stop=None)
    mine = commit(Path(worktree.path))
    main = repository.remote_branch("main")
    for branch, default, found in (
        ("acw/work", "main", StartPoints(local=mine, remote=None, default=main)),
        ("täpic", "main", StartPoints(local=None, remote=topic, default=main)),
        ("nöne", "", StartPoints(local=None, remote=None, default=None)),
    ):
        assert repository.start_points(branch, default=default) == found
    assert [repository.has_branch(name) for name in ("acw/work", "täpic", "none")] == [
        True,
        True,
        False,
    ]
