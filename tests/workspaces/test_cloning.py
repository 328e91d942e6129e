from __future__ import annotations

import datetime as dt
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from tests.workspaces import programs
from tests.workspaces.factories import WorkspaceFactory
from tests.workspaces.remote import Counted, Remote, git
from workspaces import cloning, paths
from workspaces.exceptions import (
    GitFailed,
    GitStopped,
    NameTaken,
    RefusedUrl,
    RemoteBusy,
    RepositoryBusy,
    WrongHost,
)
from workspaces.fetching import default_branches, slots
from workspaces.models import Workspace
from workspaces.plumbing import locking
from workspaces.repository import Repository

ROOT = Path(__file__).resolve().parents[2]


def requested(
    remote: Remote, name: str = "demo", *, url: str = "", **values: object
) -> Workspace:
    workspace: Workspace = WorkspaceFactory(
        name=name,
        url=url or remote.url,
        state=Workspace.State.CLONING,
        default_branch="",
        **values,
    )
    return workspace


def on_disk() -> list[str]:
    return sorted(os.listdir(paths.workspaces_directory()))


def left(name: str = "demo") -> set[str]:
    return set(os.listdir(paths.workspace_directory(name)))


@pytest.mark.django_db
def test_the_row_becomes_ready_with_its_clone_in_place(
    remote: Remote, settings: Settings
):
    settings.JOBS_WORKSPACE_FETCH_INTERVAL = dt.timedelta(minutes=5)
    workspace = requested(remote, last_fetch_error="it failed before")
    assert cloning.make(workspace)
    workspace.refresh_from_db()
    assert (workspace.state, workspace.default_branch) == ("ready", "main")
    assert (workspace.clone_progress, workspace.last_fetch_error) == ("", "")
    assert workspace.last_fetched_at is not None
    waits = workspace.next_fetch_at - workspace.last_fetched_at
    assert dt.timedelta(0) <= waits < dt.timedelta(minutes=5)
    assert on_disk() == ["demo"]
    assert left() == {"control.git", "fetch.lock", "lock", "repository.git"}
    assert git("rev-parse", "origin/main", cwd=Path(workspace.path))
    assert not cloning.make(workspace)


@pytest.mark.django_db
def test_progress_is_in_the_row_and_told(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
):
    workspace = requested(remote)
    seen = []

    def fetch(self: object, url: str, **options: object) -> int:
        for line in (
            "remote: Enumerating objects: 3, done.",
            "Receiving objects:  45% (450/1000), 1.2 MiB | 2.0 MiB/s",
            "Receiving objects:  45% (455/1000), 1.3 MiB | 2.0 MiB/s",
            "Resolving deltas: 100% (10/10), done.",
        ):
            options["progress"](line)  # type: ignore[operator]
            seen.append(Workspace.objects.get().clone_progress)
        return 0

    monkeypatch.setattr(Repository, "fetch", fetch)
    told: list[str] = []
    cloning.make(workspace, tell=told.append)
    assert told == ["receiving objects 45 %", "resolving deltas 100 %"]
    assert seen == ["", told[0], told[0], told[1]]


@pytest.mark.django_db
def test_one_that_nobody_wants_any_more_is_ended_and_leaves_nothing(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
):
    workspace = requested(remote)

    def fetch(self: object, url: str, **options: object) -> int:
        Workspace.objects.all().delete()
        options["progress"]("Receiving objects:  45% (450/1000)")  # type: ignore[operator]
        assert options["stop"]()  # type: ignore[operator]
        raise GitStopped("fetch", "was ended")

    monkeypatch.setattr(Repository, "fetch", fetch)
    with pytest.raises(GitStopped):
        cloning.make(workspace)
    assert on_disk() == []


@pytest.mark.django_db
@pytest.mark.parametrize("another", [None, "https://git.example/y"])
def test_so_is_one_whose_remote_says_nothing_at_all(
    remote: Remote, monkeypatch: pytest.MonkeyPatch, another: str | None
):
    workspace = requested(remote)
    monkeypatch.setattr(cloning, "_LOOK_EVERY", 0)

    def fetch(self: object, url: str, **options: object) -> int:
        assert not options["stop"]()  # type: ignore[operator]
        if another:
            Workspace.objects.update(url=another)
        else:
            Workspace.objects.all().delete()
        assert options["stop"]()  # type: ignore[operator]
        raise GitStopped("fetch", "was ended")

    monkeypatch.setattr(Repository, "fetch", fetch)
    with pytest.raises(GitStopped):
        cloning.make(workspace)
    assert on_disk() == []


@pytest.mark.django_db
def test_a_clone_of_another_url_than_the_row_has_by_now_is_not_kept(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
):
    workspace = requested(remote)
    with monkeypatch.context() as patched:
        patched.setattr(
            default_branches,
            "follow",
            lambda *_, **__: str(Workspace.objects.update(url=str(remote.path))),
        )
        with pytest.raises(GitStopped, match="another URL"):
            cloning.make(workspace)
    assert on_disk() == []
    workspace.refresh_from_db()
    assert cloning.make(workspace)
    assert git("remote", "get-url", "origin", cwd=Path(workspace.path)) == str(
        remote.path
    )


@pytest.mark.django_db
def test_one_whose_row_goes_at_the_last_moment_leaves_nothing(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
):
    workspace = requested(remote)
    monkeypatch.setattr(
        default_branches,
        "follow",
        lambda *_, **__: str(Workspace.objects.all().delete()),
    )
    assert not cloning.make(workspace)
    assert on_disk() == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("values", "error"),
    [
        pytest.param({"url": "/nowhere/at/all"}, GitFailed, id="no remote"),
        pytest.param({"url": "ext::sh"}, RefusedUrl, id="a refused URL"),
        pytest.param({"host": "elsewhere"}, WrongHost, id="another host"),
    ],
)
def test_one_that_fails_leaves_nothing(
    remote: Remote, values: dict[str, str], error: type[Exception]
):
    paths.workspaces_directory().mkdir(parents=True)
    with pytest.raises(error):
        cloning.make(requested(remote, "demo", **values))
    assert on_disk() == []


@pytest.mark.django_db
def test_something_else_in_its_place_is_not_overwritten(remote: Remote):
    workspace = requested(remote)
    precious = paths.workspace_directory("demo") / "repository.git/precious"
    precious.mkdir(parents=True)
    with pytest.raises(NameTaken, match="no workspace has it"):
        cloning.make(workspace)
    assert precious.exists()
    assert on_disk() == ["demo"]


@pytest.mark.django_db
def test_nor_is_what_is_put_there_while_it_is_cloned(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
):
    workspace = requested(remote)
    place = paths.workspace_directory("demo")
    make = cloning._clone

    def put(kind: str) -> None:
        if kind == "link":
            place.symlink_to("/nowhere")
        else:
            place.mkdir()

    for kind in ("link", "directory"):

        def meanwhile(*arguments: Any, kind: str = kind, **more: Any) -> str:
            put(kind)
            return make(*arguments, **more)

        monkeypatch.setattr(cloning, "_clone", meanwhile)
        with pytest.raises(NameTaken, match="no workspace has it"):
            cloning.make(workspace)
        assert on_disk() == ["demo"]
        assert Workspace.objects.get().state == "cloning"
        if kind == "link":
            place.unlink()
    place.rmdir()


@pytest.mark.django_db
def test_two_do_not_make_it_at_once(remote: Remote):
    workspace = requested(remote)
    directory = paths.workspaces_directory() / f".adding-{workspace.pk}"
    directory.mkdir(parents=True)
    paths.lock_path(directory).touch()
    with (
        locking.locked(paths.lock_path(directory), wait=dt.timedelta(0)),
        pytest.raises(RepositoryBusy, match="is being cloned already"),
    ):
        cloning.make(workspace)
    assert cloning.make(workspace)


@pytest.mark.django_db
def test_it_takes_one_of_the_hosts_slots(
    remote: Remote, settings: Settings, counted: Counted
):
    settings.ACW_GIT_HOST_LIMIT = 1
    workspace = requested(remote, url=f"git@git.example:{remote.path}")
    with slots.taken(workspace.url), pytest.raises(RemoteBusy):
        cloning.make(workspace)
    assert counted.contacts == 0
    assert on_disk() == []
    assert cloning.make(workspace)


POINTS = (
    "nothing",
    "an empty clone",
    "a whole clone",
    "its default branch",
    "its name",
    "its row",
)


@pytest.mark.django_db(transaction=True)
def test_wherever_it_is_killed_the_next_attempt_finishes_it(
    remote: Remote, data_dir: Path
):
    names = [f"killed-{number}" for number in range(len(POINTS))]
    workspaces = [requested(remote, name) for name in names]
    pairs = [
        word
        for workspace, point in zip(workspaces, POINTS, strict=True)
        for word in (str(workspace.pk), point)
    ]
    killed = programs.run("dying_clones", pairs, data_dir)
    assert killed.split() == [str(-signal.SIGKILL)] * len(POINTS)
    ready = Workspace.objects.filter(state=Workspace.State.READY)
    assert [row.name for row in ready] == names[-1:]
    half_made = list(paths.workspaces_directory().glob(".adding-*"))
    assert len(half_made) == 4
    for directory in half_made:
        (directory / "repository.git").mkdir(exist_ok=True)
        (directory / "repository.git/half").touch()
    for workspace in workspaces:
        assert cloning.make(workspace) == (workspace.name != names[-1])
    assert on_disk() == names
    for row in Workspace.objects.all():
        assert (row.state, row.default_branch) == ("ready", "main")
        assert left(row.name) >= {"control.git", "repository.git", "lock"}
        assert git("rev-parse", "origin/main", cwd=Path(row.path))
        assert git("fsck", cwd=Path(row.path)) == ""
        assert not (Path(row.path) / "half").exists()


@pytest.mark.django_db
def test_what_is_left_of_what_has_no_row_is_swept(remote: Remote):
    for name in ("gone", ".adding-12345", ".adding-0123"):
        directory = paths.workspaces_directory() / name
        directory.mkdir(parents=True)
        paths.lock_path(directory).touch()
        paths.disposable_mark(directory).touch()
    (paths.workspaces_directory() / ".removing-0123/x").mkdir(parents=True)
    bundle = paths.bundle_path("gone", 7)
    bundle.parent.mkdir(parents=True)
    bundle.touch()
    other = paths.bundle_path("another", 7)
    other.parent.mkdir(parents=True)
    cloning.sweep()
    assert on_disk() == []
    assert not bundle.parent.exists()
    assert other.parent.exists()


@pytest.mark.django_db
def test_what_was_given_up_is_swept_and_what_is_tried_again_is_not(remote: Remote):
    workspace = requested(remote, "demo")
    directory = paths.workspaces_directory() / f".adding-{workspace.pk}"
    directory.mkdir(parents=True)
    paths.lock_path(directory).touch()
    paths.disposable_mark(directory).touch()
    cloning.sweep()
    assert on_disk() == [directory.name]
    Workspace.objects.update(state=Workspace.State.FAILED)
    cloning.sweep()
    assert on_disk() == []


@pytest.mark.django_db
def test_what_somebody_is_at_is_not_swept(remote: Remote):
    directory = paths.workspaces_directory() / ".adding-12345"
    directory.mkdir(parents=True)
    paths.lock_path(directory).touch()
    paths.disposable_mark(directory).touch()
    with locking.locked(paths.lock_path(directory), wait=dt.timedelta(0)):
        cloning.sweep()
    assert on_disk() == [".adding-12345"]
