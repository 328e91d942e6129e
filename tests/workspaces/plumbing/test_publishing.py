from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.workspaces.remote import Remote, git
from workspaces.exceptions import ConfigTampered, GitFailed
from workspaces.failures import Failure, classify
from workspaces.plumbing import clone_files, loose_references, publishing
from workspaces.plumbing.control import Control
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db

REFS = Path("refs/remotes/origin")


def publish(repository: Repository) -> int:
    return publishing.publish(Control(repository.directory), repository.path)


def listed(repository: Path) -> str:
    form = "--format=%(refname) %(objectname)"
    return git("for-each-ref", form, "refs/remotes/origin", cwd=repository)


@pytest.fixture
def control(repository: Repository, remote: Remote) -> Control:
    """With a few branches, and a commit that was not published yet."""
    for branch in ("topic", "a/b"):
        remote.push("x", content=branch, branch=branch)
    repository.fetch(remote.url, timeout=None, stop=None)
    remote.push("y")
    control = Control(repository.directory)
    control.fetch(remote.url)
    return control


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
def test_what_agents_do_to_the_remotes_branches_is_put_right(
    repository: Repository, control: Control, packed: bool
):
    clone = repository.path
    publish(repository)
    wanted = listed(clone)
    if packed:
        git("pack-refs", "--all", cwd=clone)
    old = git("rev-parse", "origin/topic", cwd=clone)
    git("update-ref", "refs/remotes/origin/main", old, cwd=clone)
    git("update-ref", "-d", "refs/remotes/origin/topic", cwd=clone)
    git("update-ref", "-d", "refs/remotes/origin/a/b", cwd=clone)
    git("update-ref", "refs/remotes/origin/a", old, cwd=clone)
    git("update-ref", "refs/remotes/origin/mine", old, cwd=clone)
    assert publish(repository) == 5
    assert listed(clone) == wanted
    assert publish(repository) == 0


def test_what_is_no_reference_does_not_keep_it_from_publishing(
    repository: Repository, control: Control
):
    publish(repository)
    wanted = listed(repository.path)
    for broken in ("", "no object\n"):
        (repository.path / REFS / "main").write_text(broken)
        assert publish(repository) >= 1
        assert listed(repository.path) == wanted
    (repository.path / REFS / "main").unlink()
    os.mkfifo(repository.path / REFS / "main")
    (repository.path / REFS / "dangling").symlink_to("/nowhere")
    publish(repository)
    assert listed(repository.path) == wanted


@pytest.mark.parametrize("kind", ["above", "below", "a link above"])
def test_the_log_of_a_branch_that_is_gone_is_in_no_others_way(
    repository: Repository,
    control: Control,
    remote: Remote,
    tmp_path: Path,
    kind: str,
):
    """As where the branch went without git, which removes both."""
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep/log").touch()
    logs = repository.path / "logs" / REFS
    match kind:
        case "above":
            (logs / "new").write_text("log\n")
        case "below":
            (logs / "new/deep/deeper").mkdir(parents=True)
            (logs / "new/deep/deeper/log").write_text("log\n")
            (logs / "new/deep/link").symlink_to(outside)
        case _:
            (logs / "new").symlink_to(outside)
    remote.push("z", branch="new/deep")
    control.fetch(remote.url)
    assert publish(repository)
    assert f"{REFS}/new/deep" in listed(repository.path)
    assert (logs / "new/deep").is_file()
    assert not (logs / "new").is_symlink()
    assert (outside / "deep/log").exists()


def test_names_that_are_none_are_left_where_they_are(
    repository: Repository, control: Control
):
    main = git("rev-parse", "origin/main", cwd=repository.path)
    odd = repository.path / REFS / "no name"
    odd.write_text(f"{main}\n")
    assert publish(repository) == 1
    assert odd.exists()


@pytest.mark.parametrize("place", [REFS, "logs"])
def test_nothing_is_written_through_a_link(
    repository: Repository, control: Control, tmp_path: Path, place: str
):
    directory = repository.path / place
    directory.rename(tmp_path / "elsewhere")
    directory.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigTampered, match=str(place)):
        publish(repository)


def test_a_lock_of_somebody_is_not_taken_away(repository: Repository, control: Control):
    lock = repository.path / REFS / "main.lock"
    lock.touch()
    with pytest.raises(GitFailed) as failure:
        publish(repository)
    assert classify(failure.value) is Failure.LOCK
    assert lock.exists()
    lock.unlink()
    assert publish(repository) == 1


def test_many_branches_are_packed(
    repository: Repository, control: Control, monkeypatch: pytest.MonkeyPatch
):
    publish(repository)
    shutil.rmtree(repository.path / REFS)
    monkeypatch.setattr(publishing, "PACK_OVER", 2)
    assert publish(repository) == 3
    for path in (repository.path, control.path):
        found = clone_files.references(path, f"{REFS}/")
        assert found is not None
        assert len(found) == 3
        assert not (path / REFS / "topic").exists()


def test_without_git_or_with_it_the_same_is_published(
    repository: Repository, control: Control, monkeypatch: pytest.MonkeyPatch
):
    old = listed(repository.path)
    publish(repository)
    wanted = listed(repository.path)
    assert old != wanted
    git("update-ref", "-d", "refs/remotes/origin/main", cwd=repository.path)
    monkeypatch.setattr(loose_references, "MOST", 0)
    publish(repository)
    assert listed(repository.path) == wanted
