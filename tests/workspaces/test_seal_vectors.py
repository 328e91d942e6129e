"""What an agent plants in a repository is run by git alone, and by nothing of ours: sealed or approved."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from jobs.models import Job
from notify.models import Notification
from tests.notify.factories import EndpointFactory
from tests.workspaces.conftest import make_idle
from tests.workspaces.factories import AdminFactory
from tests.workspaces.forge import answering
from tests.workspaces.remote import Remote, commit, git
from tests.workspaces.vectors import SSH_URL, VECTORS, Place
from tests.workspaces.witness import Tripwire, plant
from workspaces import clones, holds, prune, seal
from workspaces import git as runner
from workspaces.archiving import restoring
from workspaces.exceptions import ConfigTampered
from workspaces.failures import Failure
from workspaces.fetch import fetch_workspace
from workspaces.models import Workspace, Worktree
from workspaces.plumbing import planted
from workspaces.prune import Outcome
from workspaces.pruning import contents
from workspaces.repository import Repository
from workspaces.upkeep import maintenance

pytestmark = pytest.mark.django_db


def wire(directory: Path, name: str) -> Tripwire:
    (directory / name).mkdir(parents=True)
    return Tripwire(directory / name, fails=True)


def fired(wires: dict[str, Tripwire]) -> set[str]:
    return {name for name, one in wires.items() if one.fired}


def checkout(remote: Remote, path: Path) -> Path:
    """A repository with two commits, a branch in conflict with them, an alternate, and something new at the remote."""
    git("clone", "--quiet", str(remote.path), str(path))
    shared = path.with_name(f"{path.name}-shared")
    git("clone", "--quiet", "--bare", str(remote.path), str(shared))
    git("checkout", "--quiet", "-b", "conflict", cwd=path)
    commit(path, "README", "theirs\n")
    git("checkout", "--quiet", "main", cwd=path)
    commit(path, "README", "ours\n")
    alternates = path / ".git/objects/info/alternates"
    alternates.write_text(f"{shared / 'objects'}\n")
    return path


def test_git_alone_runs_every_one_of_them(
    remote: Remote, tmp_path: Path, programs: Path
):
    plant(programs / "ssh", "exit 1")
    template = checkout(remote, tmp_path / "template")
    remote.push("new", branch="new")
    wires = {}
    with answering(401) as url:
        for vector in VECTORS:
            alone = tmp_path / vector.name / "checkout"
            wires[vector.name] = wire(tmp_path, vector.name)
            shutil.copytree(template, alone, symlinks=True)
            place = Place(git_dir=alone / ".git", aside=alone.parent, remote=remote.url)
            vector.plant(place, str(wires[vector.name].program))
            vector.fires(alone, remote=remote.url, url_401=url)
    assert fired(wires) == {vector.name for vector in VECTORS}


@pytest.fixture
def wires(
    workspace: Workspace,
    repository: Repository,
    worktree: Worktree,
    remote: Remote,
    tmp_path: Path,
) -> dict[str, Tripwire]:
    """All of them planted in the clone of a workspace, and agents' work in its worktree."""
    path = Path(worktree.path)
    commit(path, "work.txt")
    (path / "README").write_text("changed\n")
    (path / "untracked").write_text("new\n")
    wires = {}
    for vector in VECTORS:
        wires[vector.name] = wire(tmp_path / "wires", vector.name)
        aside = tmp_path / "wires" / vector.name
        place = Place(git_dir=repository.path, aside=aside, remote=remote.url)
        vector.plant(place, str(wires[vector.name].program))
    return wires


def steps(
    workspace: Workspace, repository: Repository, worktree: Worktree
) -> dict[str, Callable[[], object]]:
    """Everything that is done with a clone and its worktrees."""
    path = Path(worktree.path)

    def fetch() -> None:
        workspace.refresh_from_db()
        assert fetch_workspace(workspace).error == ""

    def acquire() -> None:
        workspace.refresh_from_db()
        made = holds.acquire(workspace, holder="another", branch="acw/another")
        assert Path(made.path, "README").read_text() == "hello\n"

    def look() -> None:
        found = contents.look(repository, path).in_words()
        assert any("untracked" in line for line in found)

    def prune_it() -> None:
        make_idle(worktree, days=31)
        assert prune.prune_worktree(worktree.pk) == Outcome.PRUNED
        assert not path.exists()

    def restore() -> None:
        restoring.restore(worktree.pk, actor="ada")
        assert (path / "README").read_text() == "changed\n"
        assert (path / "untracked").exists()

    return {f.__name__: f for f in (fetch, acquire, look, prune_it, restore)}


def test_nothing_runs_what_is_planted_and_approved(
    workspace: Workspace,
    repository: Repository,
    worktree: Worktree,
    remote: Remote,
    wires: dict[str, Tripwire],
):
    seal.approve(workspace, actor="ada")
    remote.push("newer", branch="newer")
    for name, step in steps(workspace, repository, worktree).items():
        step()
        assert fired(wires) == set(), name


def test_nothing_works_on_what_is_planted_and_not_approved(
    workspace: Workspace,
    repository: Repository,
    worktree: Worktree,
    wires: dict[str, Tripwire],
):
    make_idle(worktree, days=31)
    fetched = fetch_workspace(workspace)
    assert "core.fsmonitor" in fetched.error or "filter.a.clean" in fetched.error
    with pytest.raises(ConfigTampered):
        holds.acquire(workspace, holder="another", branch="acw/another")
    prune.prune_worktree(worktree.pk)
    assert Path(worktree.path, "README").read_text() == "changed\n"
    assert fired(wires) == set()


def test_no_filter_runs_that_is_there_when_git_looks_and_not_when_we_do(
    workspace: Workspace,
    repository: Repository,
    worktree: Worktree,
    remote: Remote,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """An agent that is as quick as can be: at every command of git there is another filter, and none whenever somebody looks."""
    path = Path(worktree.path)
    (path / "README").write_text("changed\n")
    (path / "untracked").write_text("new\n")
    tripwire = wire(tmp_path, "filter")
    config = repository.path / "config"
    clean = config.read_text()
    numbers = itertools.count()
    start, look = runner._start, planted.look

    def change_and_start(*args: Any, **options: Any) -> Any:
        name = f"late{next(numbers)}"
        commands = "".join(
            f"\t{what} = {tripwire.program}\n"
            for what in ("clean", "smudge", "process")
        )
        config.write_text(f'{clean}[filter "{name}"]\n{commands}')
        (repository.path / "info").mkdir(exist_ok=True)
        (repository.path / "info/attributes").write_text(f"* filter={name}\n")
        return start(*args, **options)

    def hide_and_look(*args: Any, **options: Any) -> Any:
        config.write_text(clean)
        return look(*args, **options)

    monkeypatch.setattr(runner, "_start", change_and_start)
    monkeypatch.setattr(planted, "look", hide_and_look)
    remote.push("newer", branch="newer")
    for name, step in steps(workspace, repository, worktree).items():
        step()
        assert not tripwire.fired, name


def test_nothing_is_written_or_removed_where_links_in_a_clone_lead(
    workspace: Workspace, repository: Repository, worktree: Worktree, tmp_path: Path
):
    make_idle(worktree, days=31)
    outside = tmp_path / "outside"
    for name in ("refs/heads", "logs/refs/heads", "refs/acw", "worktrees"):
        place = repository.path / name
        if place.exists():
            shutil.move(place, outside)
        else:
            (outside / "archive").mkdir(parents=True)
        place.symlink_to(outside)
        before = sorted(outside.rglob("*"))
        workspace.refresh_from_db()
        with pytest.raises(ConfigTampered, match=name):
            holds.acquire(workspace, holder="another", branch="acw/another")
        assert prune.prune_worktree(worktree.pk) == Outcome.BLOCKED
        assert maintenance.maintain(workspace) != ""
        assert sorted(outside.rglob("*")) == before, name
        assert Path(worktree.path, "README").exists()
        place.unlink()
        shutil.move(outside, place)
    shutil.rmtree(repository.path / "refs/acw")
    workspace.refresh_from_db()
    assert fetch_workspace(workspace).error == ""
    assert prune.prune_worktree(worktree.pk) == Outcome.PRUNED


def test_a_pipe_in_a_clone_is_refused_at_once_and_not_waited_for(
    workspace: Workspace, repository: Repository, worktree: Worktree
):
    (admin,) = (repository.path / "worktrees").iterdir()
    for path in (
        repository.path / "shallow",
        repository.path / "info/attributes",
        repository.path / "objects/info/commit-graph",
        admin / "gitdir",
    ):
        was = path.read_bytes() if path.exists() else None
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        workspace.refresh_from_db()
        with pytest.raises(ConfigTampered, match=path.name):
            holds.acquire(workspace, holder="another", branch="acw/another")
        assert fetch_workspace(workspace).failure == Failure.CONFIG_TAMPERED
        path.unlink()
        if was is not None:
            path.write_bytes(was)


@pytest.mark.parametrize("url", [SSH_URL, "401"], ids=["ssh", "https"])
def test_nothing_planted_has_a_say_in_how_a_remote_is_reached(
    workspace: Workspace,
    repository: Repository,
    wires: dict[str, Tripwire],
    programs: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
):
    settings.ACW_GIT_PROTOCOLS = ["ssh", "http", "file"]
    plant(programs / "ssh", "echo 'Permission denied (publickey).' >&2", "exit 255")
    # Of whoever started the server.
    inherited = str(wires["ask-pass"].program)
    for name in ("GIT_ASKPASS", "SSH_ASKPASS", "GIT_SSH_COMMAND", "GIT_SSH"):
        monkeypatch.setenv(name, inherited)
    monkeypatch.setenv("DISPLAY", ":0")
    seal.approve(workspace, actor="ada")
    with answering(401) as locked:
        Workspace.objects.filter(pk=workspace.pk).update(
            url=locked if url == "401" else url
        )
        workspace.refresh_from_db()
        fetched = fetch_workspace(workspace)
    assert fetched.failure == "auth"
    assert fired(wires) == set()


def test_a_submodule_is_neither_fetched_nor_checked_out(
    remote: Remote, tmp_path: Path, settings: Settings
):
    tripwire = wire(tmp_path, "submodule")
    module = tmp_path / "module.git"
    git("clone", "--quiet", "--bare", str(remote.path), str(module))
    allow = ("-c", "protocol.file.allow=always")
    git(*allow, "submodule", "add", "--quiet", str(module), "module", cwd=remote.work)
    (remote.work / ".gitmodules").write_text(
        '[submodule "module"]\n\tpath = module\n'
        f"\turl = ext::{tripwire.program}\n\tfetchRecurseSubmodules = true\n"
    )
    git("add", ".gitmodules", cwd=remote.work)
    remote.push("with-module")
    workspace = clones.add_workspace("with-submodule", remote.url)
    repository = Repository(Path(workspace.path).parent)
    for key, value in {
        "submodule.recurse": "true",
        "fetch.recurseSubmodules": "true",
        "submodule.module.url": f"ext::{tripwire.program}",
        "submodule.module.update": f"!{tripwire.program}",
        "submodule.module.active": "true",
        "protocol.ext.allow": "always",
    }.items():
        git("config", key, value, cwd=repository.path)
    seal.approve(workspace, actor="ada")
    workspace.refresh_from_db()
    worktree = holds.acquire(workspace, holder="agent", branch="acw/work")
    remote.push("more")
    assert fetch_workspace(workspace).error == ""
    assert not list(Path(worktree.path, "module").iterdir())
    contents.look(repository, Path(worktree.path))
    assert tripwire.fired == ""
    allowed = ["-c", "protocol.ext.allow=always", "submodule", "update"]
    subprocess.run(["git", *allowed], cwd=worktree.path, capture_output=True)
    assert tripwire.fired != ""  # with git alone it is run


def test_a_working_tree_elsewhere_is_neither_read_nor_written(
    workspace: Workspace, repository: Repository, worktree: Worktree, tmp_path: Path
):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "README").write_text("mine\n")
    holds.acquire_again(worktree.pk, holder="agent")
    git("config", "extensions.worktreeConfig", "true", cwd=repository.path)
    git("config", "--worktree", "core.worktree", str(victim), cwd=Path(worktree.path))
    workspace.refresh_from_db()
    with pytest.raises(ConfigTampered, match=r"core\.worktree"):
        seal.check(workspace, repository)
    seal.approve(workspace, actor="ada")
    assert contents.look(repository, Path(worktree.path)).is_saved
    assert (victim / "README").read_text() == "mine\n"
    assert [path.name for path in victim.iterdir()] == ["README"]


def test_secrets_that_git_tells_reach_nobody(
    workspace: Workspace,
    programs: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    """Neither the row, nor the log, nor notifications, nor what receivers are sent."""
    settings.NOTIFY_WEBHOOK_ENABLED = True
    AdminFactory.create()
    EndpointFactory.create(topics=["*"])
    monkeypatch.setenv("https_proxy", "http://user:PROXY%2DS3KRET@proxy.example:1")
    said = (
        "fatal: https://user:URL-S3KRET@git.example/x?token=QUERY-S3KRET",
        "proxy: PROXY-S3KRET PROXY%2DS3KRET",
        "Authorization: Basic HEADER-S3KRET",
        "remote: ghp_S3KRETS3KRETS3KRETS3KRET",
        "Permission denied (publickey).",
    )
    # On one line: of many, only the last few are told.
    plant(programs / "ssh", f"echo '{' / '.join(said)}' >&2", "exit 255")
    Workspace.objects.filter(pk=workspace.pk).update(url=SSH_URL)
    workspace.refresh_from_db()
    fetched = fetch_workspace(workspace)
    workspace.refresh_from_db()
    jobs = list(Job.objects.filter(type="webhook.deliver"))
    told = list(Notification.objects.filter(topic="workspace.sync_failed"))
    assert jobs
    assert told
    everything = [
        fetched.error,
        workspace.last_fetch_error,
        caplog.text,
        *(str(record.__dict__) for record in caplog.records),
        *(str(one.__dict__) for one in told),
        *(str(job.payload) for job in jobs),
    ]
    assert "publickey" in workspace.last_fetch_error
    assert not [text for text in everything if "S3KRET" in text]
