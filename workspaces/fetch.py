"""Fetching workspaces: one, or all of one remote with a single look at it."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import F, Q
from django.db.models.functions import Now

from workspaces import hosts, paths, readiness, remotes, seal
from workspaces.exceptions import (
    CloneMissing,
    ConfigTampered,
    GitError,
    GitFailed,
    GitStopped,
    OutsideDataDirectory,
    RefusedUrl,
    RepositoryBusy,
)
from workspaces.failures import Failure, classify
from workspaces.fetching import (
    default_branches,
    fetch_outcomes,
    fetch_schedule,
    healing,
    slots,
)
from workspaces.fetching.fetch_rows import Candidate
from workspaces.models import Workspace
from workspaces.plumbing import presentable, stale_locks
from workspaces.repository import Repository, Stop

T = TypeVar("T")

LOCK_WAIT = dt.timedelta(seconds=10)
_SHORT_WAIT = dt.timedelta(seconds=1)

_ASKS_REMOTE = frozenset({"fetch", "ls-remote"})
_FAILURES = (
    GitError,
    CloneMissing,
    ConfigTampered,
    OutsideDataDirectory,
    RefusedUrl,
    OSError,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    """``changed``: how many of the remote's branches came, moved or went; ``error``: "" or why it failed, and ``failure`` how.

    ``again_soon``: it was no more than a lock that somebody had.
    """

    changed: int = 0
    error: str = ""
    failure: Failure | None = None
    again_soon: bool = False


@dataclass(kw_only=True, slots=True)
class _Round:
    """What fetches of one remote have in common. ``source`` is the first that worked, whose lock is held on.

    ``is_over``: the last one failed in a way that each will.
    """

    timeout: dt.timedelta | None
    stop: Stop | None
    next_in: dt.timedelta
    may_wait: bool
    source: Repository | None = None
    default_branch: str | None = None
    is_over: bool = False


def fetch_workspace(
    workspace: Workspace,
    *,
    timeout: dt.timedelta | None = None,
    stop: Stop | None = None,
) -> Fetched:
    """Fetch the workspace's remote now and record how it went; a failure is returned, not raised.

    Takes ``timeout`` at most (and at most ``ACW_GIT_TIMEOUT``) for each git command. Fetching is no use of
    the worktrees. Raises :class:`~workspaces.exceptions.RepositoryBusy` where another fetch does not
    end soon, ``RemoteBusy`` where there are many from its remote's host, ``GitStopped`` when ``stop`` says so, ``NotCloned``
    and ``WrongHost``; none of these is recorded.
    """
    readiness.check_ready(workspace)
    branches = workspace.worktrees.values_list("branch", flat=True)
    candidate = Candidate(workspace=workspace, branches=tuple(branches))
    (fetched,) = fetch_together([candidate], timeout=timeout, stop=stop)
    return fetched


def fetch_together(
    candidates: Sequence[Candidate],
    *,
    timeout: dt.timedelta | None = None,
    stop: Stop | None = None,
    may_wait: bool = False,
) -> list[Fetched]:
    """Fetch workspaces of one remote and record how it went with each; the remote is asked once, for the first that works.

    The others take what that one has. Where it is the remote that fails, it has failed all of them. ``may_wait`` says that the caller's
    job ends with this, so that what is recorded can be written with its completion. Raises like
    :func:`fetch_workspace`: ``RepositoryBusy`` when all the others are done.
    """
    fetches = _Round(
        timeout=timeout,
        stop=stop,
        next_in=fetch_schedule.after_success(),
        may_wait=may_wait,
    )
    done: list[Fetched] = []
    busy: RepositoryBusy | None = None
    with contextlib.ExitStack() as held:
        for number, candidate in enumerate(candidates):
            alone = fetches.source is None
            try:
                with contextlib.ExitStack() as locks:
                    fetched = _fetch_one(candidate, fetches, locks)
                    if alone and fetches.source is not None:
                        held.push(locks.pop_all())
            except RepositoryBusy as error:
                busy = error
                continue
            done.append(fetched)
            if alone and fetched.failure and fetches.is_over:
                done += [
                    _failed(other.workspace, fetched.failure, fetched.error)
                    for other in candidates[number + 1 :]
                ]
                break
    if busy is not None:
        raise busy
    return done


def _fetch_one(
    candidate: Candidate, fetches: _Round, locks: contextlib.ExitStack
) -> Fetched:
    workspace = candidate.workspace
    hosts.check(workspace)
    try:
        remotes.parse(workspace.url)  # what is allowed may have changed since
        repository = Repository(paths.own_directory(workspace))
        # Who has another's lock already waits for none for long: the other may want that one.
        wait = LOCK_WAIT if fetches.source is None else _SHORT_WAIT
        locks.enter_context(repository.locked_for_fetch(wait=wait, stop=fetches.stop))
        seal.check(workspace, repository)
        changed, default_branch = _update(candidate, repository, fetches)
    except GitStopped:
        raise
    except _FAILURES as error:
        failure = classify(error)
        # What cannot be told apart counts as the network's, and may be the clone's own trouble.
        asked = isinstance(error, GitError) and error.verb in _ASKS_REMOTE
        fetches.is_over = asked and failure in fetch_schedule.OF_THE_REMOTE
        return _failed(workspace, failure, _said(error))
    if fetches.source is None:
        fetches.source = repository
        # Where it is as before, it was not asked for, unless there is none.
        if default_branch != workspace.default_branch or not default_branch:
            fetches.default_branch = default_branch
    fetch_outcomes.record_success(
        workspace,
        default_branch=default_branch,
        changed=changed,
        next_in=fetches.next_in,
        may_wait=fetches.may_wait,
    )
    return Fetched(changed=changed)


def _update(
    candidate: Candidate, repository: Repository, fetches: _Round
) -> tuple[int, str]:
    """Bring the clone up to date; how many branches changed, and the default branch."""
    workspace, wanted = candidate.workspace, set(candidate.branches)
    # Most have no worktrees, and nothing to compare.
    before = default_branches.branches_of(repository) & wanted if wanted else set()
    changed = _mended(workspace, repository, fetches)
    if wanted:
        after = default_branches.branches_of(repository) & wanted
        fetch_outcomes.record_upstreams(workspace, gone=before - after, there=after)

    def follow() -> str:
        repository.follow_url(workspace.url)
        return default_branches.follow(
            repository,
            workspace.url,
            before=workspace.default_branch,
            known=fetches.default_branch,
            timeout=fetches.timeout,
            stop=fetches.stop,
        )

    return changed, _unlocked(workspace, repository, follow)


def _unlocked(workspace: Workspace, repository: Repository, step: Callable[[], T]) -> T:
    """Take the step, and once more where a lock was in its way that a killed git has left."""
    try:
        return step()
    except GitFailed as error:
        # Not at the first time: whoever has it is most likely done by the next.
        again = workspace.fetch_problem == classify(error) == Failure.LOCK
        if not again or not stale_locks.remove_named(repository, error.stderr):
            raise
        return step()


def _mended(workspace: Workspace, repository: Repository, fetches: _Round) -> int:
    """Fetch, and once more where what was in the way could be put right."""
    source = fetches.source
    said = ""

    def heal(url: str, *, timeout: dt.timedelta | None, stop: Stop | None) -> int:
        return healing.heal(repository, url, said, timeout=timeout, stop=stop)

    if healing.is_unfinished(repository):
        return _from_remote(workspace, heal, fetches)

    def get() -> int:
        if source is not None:
            return repository.take_from(
                source, timeout=fetches.timeout, stop=fetches.stop
            )
        return _from_remote(workspace, repository.fetch, fetches)

    try:
        return _unlocked(workspace, repository, get)
    except GitStopped:
        raise
    except GitError as error:
        said = error.stderr
        if classify(error) is Failure.CORRUPT and _claim_healing(workspace):
            return _from_remote(workspace, heal, fetches)
        raise


def _from_remote(
    workspace: Workspace, fetch: Callable[..., int], fetches: _Round
) -> int:
    with slots.taken(workspace.url):
        return fetch(workspace.url, timeout=fetches.timeout, stop=fetches.stop)


def _claim_healing(workspace: Workspace) -> bool:
    """Whether it was not tried since the last fetch that worked; it is from now on."""
    untried = Q(healed_at=None) | Q(healed_at__lt=F("last_fetched_at"))
    rows = Workspace.objects.filter(untried, pk=workspace.pk)
    return bool(rows.update(healed_at=Now()))


def _failed(workspace: Workspace, failure: Failure, error: str) -> Fetched:
    failures = fetch_outcomes.record_failure(workspace, failure=failure, error=error)
    return Fetched(
        error=error,
        failure=failure,
        again_soon=fetch_schedule.is_retried_soon(failure, failures),
    )


def _said(error: Exception) -> str:
    if isinstance(error, OSError):
        # The name may be an agent's, of bytes that are no text.
        where = presentable.value(str(error.filename or "the data directory"))
        return f"{error.strerror or 'input/output error'}: {where}"
    return str(error)
