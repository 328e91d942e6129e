"""The upkeep of a clone: references and objects are packed, so that git stays quick, and now and then all are seen to be there.

Nothing that git could still need is removed: ``git gc`` is not run, and no object is ever pruned, reachable or not. Each step
takes the locks for itself, so that whoever wants a worktree waits for no more than one; where one is taken, this gives way.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
from collections.abc import Callable, Iterator

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from notify.dispatch import Event, dispatch
from notify.links import admin_page
from notify.recipients import owner_or_admins
from workspaces import git, hosts, paths, prune, seal, topics
from workspaces.archiving import retention, store
from workspaces.events import LogEvent
from workspaces.exceptions import (
    CloneMissing,
    ConfigTampered,
    GitFailed,
    GitStopped,
    RepositoryBusy,
    WorkspacesError,
)
from workspaces.holding import checkouts
from workspaces.models import Workspace
from workspaces.plumbing import presentable, stale_locks
from workspaces.repository import Repository, Stop
from workspaces.upkeep import quota, sizes

log = logging.getLogger(__name__)

CHECKED_EVERY = dt.timedelta(days=7)

CONFIGURATION = {
    # An agent's own gc must neither forget worktrees nor remove what an archive or a fetch is about to refer to.
    "gc.worktreepruneexpire": "never",
    "gc.pruneexpire": "30.days",
}
_TASKS = ("pack-refs", "loose-objects", "commit-graph", "incremental-repack")
_SAID_MOST = 2000
_NO_WAIT = dt.timedelta(0)
_FSCK = ["fsck", "--connectivity-only", "--no-dangling", "--no-progress"]

_Step = Callable[[Workspace, Repository, Stop | None], None]


def maintain(workspace: Workspace, *, stop: Stop | None = None) -> str:
    """Do all of it for the workspace's clone; return what went wrong, in words, or "". That is recorded, and told when it is new.

    Not where the clone is gone or its configuration is not approved: reconciliation and the seal tell that.

    Raises :class:`~workspaces.exceptions.RepositoryBusy` where somebody works on the clone, ``GitStopped`` when ``stop`` says so,
    and ``WrongHost``; then the rest is the next call's.
    """
    hosts.check(workspace)
    errors = []
    try:
        repository = Repository(paths.own_directory(workspace))
        seal.check(workspace, repository)
        for what, step in _steps(workspace):
            try:
                step(workspace, repository, stop)
            except (RepositoryBusy, GitStopped, ConfigTampered, CloneMissing):
                raise
            except (WorkspacesError, OSError) as error:
                errors.append(_in_words(what, error))
    except (RepositoryBusy, GitStopped):
        raise
    # These are others' to tell, and of what fails once they are over people are to be told.
    except ConfigTampered:
        return "its configuration has keys that nobody approved, so that no git is run on it"
    except CloneMissing as error:
        return str(error)
    except (WorkspacesError, OSError) as error:
        errors.append(_in_words("clone", error))
    _record(workspace, errors)
    return "; ".join(errors)


def _steps(workspace: Workspace) -> Iterator[tuple[str, _Step]]:
    """Each with what people are told that failed."""
    yield "leftovers", _clear
    yield "configuration", _configure
    yield "archives", _mend_archives
    yield "expired archives", _expire_archives
    for task in _TASKS:
        yield task, _run(task)
    yield "control.git", _pack_control
    due = Workspace.objects.filter(
        Q(checked_at__isnull=True) | Q(checked_at__lt=Now() - CHECKED_EVERY)
    )
    if due.filter(pk=workspace.pk).exists():
        yield "objects", _check
    yield "sizes", _measure


@contextlib.contextmanager
def _alone(repository: Repository, stop: Stop | None) -> Iterator[None]:
    with (
        repository.locked(wait=_NO_WAIT, stop=stop),
        repository.locked_for_fetch(wait=_NO_WAIT, stop=stop),
    ):
        yield


def _clear(workspace: Workspace, repository: Repository, stop: Stop | None) -> None:
    with _alone(repository, stop):
        stale_locks.sweep(repository)
        prune.sweep(repository, workspace.pk)
        store.sweep(repository)
        checkouts.sweep(repository)
        # A removal that was interrupted before it deleted anything has left the mark; without a row it stays.
        if Workspace.objects.filter(pk=workspace.pk).exists():
            paths.disposable_mark(repository.directory).unlink(missing_ok=True)


def _configure(workspace: Workspace, repository: Repository, stop: Stop | None) -> None:
    pattern = "^gc\\.(pruneexpire|worktreepruneexpire)$"
    listed = repository.run(
        ["config", "--null", "--get-regexp", pattern], accept=(0, 1), stop=stop
    )
    entries = listed.stdout.decode(errors="replace").split("\0")
    there = dict(entry.split("\n", 1) for entry in entries if "\n" in entry)
    with _alone(repository, stop):
        for key, value in CONFIGURATION.items():
            if there.get(key) != value:
                repository.run(["config", "--replace-all", "--", key, value], stop=stop)


def _mend_archives(
    workspace: Workspace, repository: Repository, stop: Stop | None
) -> None:
    with _alone(repository, stop):
        retention.mend_refs(workspace, repository, stop=stop)


def _expire_archives(
    workspace: Workspace, repository: Repository, stop: Stop | None
) -> None:
    with _alone(repository, stop):
        retention.expire(workspace, repository, stop=stop)


def _run(task: str) -> _Step:
    def step(workspace: Workspace, repository: Repository, stop: Stop | None) -> None:
        with _alone(repository, stop):
            packs = (repository.path / "objects" / "pack").glob("*.pack")
            # Older gits fail where there is nothing to repack.
            if task != "incremental-repack" or any(packs):
                repository.run(
                    ["maintenance", "run", "--quiet", f"--task={task}"], stop=stop
                )

    return step


def _pack_control(
    workspace: Workspace, repository: Repository, stop: Stop | None
) -> None:
    if repository.control.is_dir():
        with _alone(repository, stop):
            git.run(["pack-refs", "--all"], git_dir=repository.control, stop=stop)


def _check(workspace: Workspace, repository: Repository, stop: Stop | None) -> None:
    # Agents need not wait for this one: it only reads, and objects come before the references to them.
    with repository.locked_for_fetch(wait=_NO_WAIT, stop=stop):
        looked = git.run(
            _FSCK,
            git_dir=repository.path,
            longest=settings.ACW_CLONE_TIMEOUT,
            stop=stop,
            accept=range(64),
        )
    if looked.status:
        # What is missing is on its standard output.
        said = presentable.stderr(looked.stdout[:_SAID_MOST])
        raise GitFailed("fsck", looked.status, stderr=f"{looked.stderr}\n{said}")
    Workspace.objects.filter(pk=workspace.pk).update(checked_at=Now())


def _measure(workspace: Workspace, repository: Repository, stop: Stop | None) -> None:
    sizes.sample_clone(workspace, stop=stop)
    sizes.add_up(workspace.pk)
    quota.tell(workspace.pk, stop=stop)


def _in_words(what: str, error: Exception) -> str:
    said = presentable.disk_error(error) if isinstance(error, OSError) else str(error)
    return f"{what}: {said}"


def _record(workspace: Workspace, errors: list[str]) -> None:
    rows = Workspace.objects.filter(pk=workspace.pk)
    facts = {"workspace_id": workspace.pk, "workspace": workspace.name}
    error = "; ".join(errors)
    if not error:
        rows.update(maintained_at=Now(), maintenance_error="")
        log.info(LogEvent.WORKSPACE_MAINTAINED, extra=facts)
        return
    with transaction.atomic():
        locked = rows.select_for_update(of=("self",)).select_related("owner").first()
        if locked is None:
            return
        rows.update(maintenance_error=error)
        # By what it was that failed: the rest may read otherwise each night.
        before = f"; {locked.maintenance_error}"
        if any(f"; {each.partition(': ')[0]}: " not in before for each in errors):
            dispatch(_event(locked, error))
    log.warning(LogEvent.WORKSPACE_MAINTENANCE_FAILED, extra={**facts, "error": error})


def _event(workspace: Workspace, error: str) -> Event:
    return Event(
        topic=topics.MAINTENANCE_FAILED.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"The clone of {workspace.name} could not be maintained",
        body=(
            f"{error}\n\nIt is {workspace.path} on {workspace.host}, and is tried again every night; at once:"
            f" manage.py workspace maintain {workspace.name}. Where objects are missing, push what you have in its worktrees first."
        ),
        data={
            "url": admin_page(workspace),
            "workspace_id": workspace.pk,
            "workspace": workspace.name,
            "error": error,
        },
    )
