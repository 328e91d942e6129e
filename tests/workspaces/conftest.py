from __future__ import annotations

import datetime as dt
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import Settings

from jobs.context import JobContext
from notify.models import Notification
from tests.workspaces.factories import WorktreeFactory
from tests.workspaces.remote import Cloned, Counted, Remote, git, make_template
from tests.workspaces.witness import Lifeline, Tripwire
from workspaces import clones, cloning, holds, paths, worktrees
from workspaces import git as git_runner
from workspaces.git import Result
from workspaces.models import Workspace, Worktree
from workspaces.repository import Repository

Told = Callable[[str], list[Notification]]


@pytest.fixture(autouse=True)
def data_dir(settings: Settings, tmp_path: Path) -> Path:
    """Each test has a data directory of its own."""
    settings.ACW_DATA_DIR = tmp_path / "data"
    return tmp_path / "data"


@pytest.fixture(scope="session")
def remote_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("remote")
    make_template(directory)
    return directory


@pytest.fixture
def remote(tmp_path: Path, remote_template: Path) -> Remote:
    shutil.copytree(remote_template, tmp_path / "remotes")
    return Remote(tmp_path / "remotes")


@pytest.fixture(scope="session")
def cloned(tmp_path_factory: pytest.TempPathFactory) -> Cloned:
    return Cloned(tmp_path_factory.mktemp("cloned") / "first")


@pytest.fixture
def workspace(
    db: None, remote: Remote, cloned: Cloned, monkeypatch: pytest.MonkeyPatch
) -> Workspace:
    """A workspace ``demo``, cloned from the remote."""
    with monkeypatch.context() as patched:
        patched.setattr(cloning, "_clone", cloned.copy)
        return clones.add_workspace("demo", remote.url)


@pytest.fixture
def repository(workspace: Workspace) -> Repository:
    return Repository(Path(workspace.path).parent)


@pytest.fixture
def worktree(workspace: Workspace) -> Worktree:
    """A free worktree of the workspace, on the branch ``acw/work``."""
    acquired = holds.acquire(workspace, branch="acw/work", holder="agent")
    return holds.release(acquired.pk)


@pytest.fixture
def told() -> Told:
    """The notifications of a topic so far, oldest first."""

    def told(topic: str) -> list[Notification]:
        return list(Notification.objects.filter(topic=topic).order_by("pk"))

    return told


@pytest.fixture
def tripwire(tmp_path: Path) -> Tripwire:
    return Tripwire(tmp_path)


@pytest.fixture
def lifeline(tmp_path: Path) -> Iterator[Lifeline]:
    line = Lifeline(tmp_path / "lifeline")
    yield line
    line.close()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory whose programs are found before all others, such as an ``ssh``."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory), prepend=":")
    return directory


@pytest.fixture
def counted(programs: Path) -> Counted:
    return Counted(programs)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The arguments of every git that the product has started since."""
    run, commands = git_runner.run, list[Sequence[str]]()

    def noting(arguments: Sequence[str], **options: Any) -> Result:
        commands.append(arguments)
        return run(arguments, **options)

    monkeypatch.setattr(git_runner, "run", noting)
    return commands


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small repository with a commit."""
    path = tmp_path / "checkout"
    git("init", "--quiet", "--initial-branch=main", str(path))
    (path / "file").write_text("content\n")
    git("add", ".", cwd=path)
    git("commit", "--quiet", "-m", "first", cwd=path)
    return path


def make_idle(worktree: Worktree, **duration: float) -> None:
    """As if nobody had used it for so long, e.g. ``days=31``; what was done in it until now does not count."""
    Worktree.objects.filter(pk=worktree.pk).update(
        last_used_at=Now() - dt.timedelta(**duration), use_seen_at=Now()
    )


def begin_restoration(worktree: Worktree) -> None:
    """Make the row of one that is gone, as a restoration that was interrupted leaves it."""
    WorktreeFactory(
        pk=worktree.pk,
        workspace=worktree.workspace,
        path=worktree.path,
        branch=worktree.branch,
        state=Worktree.State.RESTORING,
    )


@pytest.fixture
def path(worktree: Worktree) -> Path:
    """The directory of the worktree, which has been idle for 31 days."""
    make_idle(worktree, days=31)
    return Path(worktree.path)


@pytest.fixture
def admin(worktree: Worktree, repository: Repository) -> Path:
    """The registration of the worktree: the directory in which the clone keeps its HEAD and index."""
    found = worktrees.registration(repository, Path(worktree.path))
    assert found is not None
    return found


@pytest.fixture
def trash(worktree: Worktree, repository: Repository) -> Path:
    return paths.trash_path(repository.directory, worktree.pk)


def context(timeout: dt.timedelta | None = None) -> JobContext:
    """What a handler is given that is called by hand."""
    return JobContext(
        job_id=uuid.uuid4(),
        type="x",
        ref_id=None,
        queue="x",
        attempt=1,
        max_attempts=5,
        lease_seq=1,
        enqueued_at=timezone.now(),
        timeout=timeout,
    )


def database_time() -> dt.datetime:
    """By the clock that decides."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        (now,) = cursor.fetchone()
    assert isinstance(now, dt.datetime)
    return now
