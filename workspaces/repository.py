"""One clone on this host's disk: what is asked of it and done to it through git.

Knows no rows. Its remote's branches are kept as ``refs/remotes/origin/*``, apart from the branches
that agents work on: a fetch never touches those.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from workspaces import git, paths
from workspaces.exceptions import CloneMissing, GitError, InvalidName
from workspaces.git import Result
from workspaces.plumbing import clone_files, locking
from workspaces.plumbing.control import REFSPEC, REMOTE, Control
from workspaces.plumbing.publishing import publish

Stop = Callable[[], bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class StartPoints:
    """Commits of a branch: the agents' own, the remote's at the last fetch, and that of the remote's default branch then."""

    local: str | None
    remote: str | None
    default: str | None


@dataclass(frozen=True)
class Repository:
    """The clone of a workspace, in the workspace's ``directory``."""

    directory: Path

    # Paths are slow to make and to write out, and each fetch asks for them some dozens of times.
    @cached_property
    def path(self) -> Path:
        return paths.repository_path(self.directory)

    @cached_property
    def control(self) -> Path:
        """The directory that its fetches go through; see :mod:`workspaces.plumbing.control`."""
        return paths.control_path(self.directory)

    @cached_property
    def _control(self) -> Control:
        return Control(self.directory)

    @contextlib.contextmanager
    def locked(self, *, wait: dt.timedelta, stop: Stop | None = None) -> Iterator[None]:
        """Alone add and remove worktrees during the block; see :func:`workspaces.plumbing.locking.locked`."""
        with locking.locked(paths.lock_path(self.directory), wait=wait, stop=stop):
            self._refuse_missing()
            yield

    @contextlib.contextmanager
    def locked_for_fetch(
        self, *, wait: dt.timedelta, stop: Stop | None = None
    ) -> Iterator[None]:
        """Alone fetch during the block. A lock of its own: no agent waits for a slow remote."""
        with locking.locked(
            paths.fetch_lock_path(self.directory), wait=wait, stop=stop
        ):
            self._refuse_missing()
            yield

    def _refuse_missing(self) -> None:
        if not self.path.is_dir():
            raise CloneMissing(f"there is no clone at {self.path}")

    def run(
        self,
        arguments: Sequence[str],
        *,
        config: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        stop: Stop | None = None,
        accept: Collection[int] = (0,),
    ) -> Result:
        """Run a git command on this repository; see :func:`workspaces.git.run`."""
        return git.run(
            arguments,
            git_dir=self.path,
            config=config,
            stdin=stdin,
            stop=stop,
            accept=accept,
        )

    def create(self, url: str) -> None:
        """Make it, empty, with this remote. Bare: every branch is free to be a worktree's."""
        git.run(["init", "--quiet", "--bare", "--template=", "--", str(self.path)])
        self._control.ensure()
        self._control.note_origin(url)
        for key, value in {
            "remote.origin.url": url,
            "remote.origin.fetch": REFSPEC,
            # In a bare repository, git would not keep the logs that lost commits are found by.
            "core.logAllRefUpdates": "true",
            # An agent's own git must not forget worktrees whose disk is away for a while.
            "gc.worktreePruneExpire": "never",
            # Nor may it remove what an archive or a fetch is about to refer to.
            "gc.pruneExpire": "30.days",
        }.items():
            self.run(["config", "--", key, value])

    def fetch(
        self,
        url: str,
        *,
        timeout: dt.timedelta | None,
        stop: Stop | None,
        progress: Callable[[str], None] | None = None,
        refetch: bool = False,
    ) -> int:
        """Bring ``refs/remotes/origin/*`` up to date; return how many branches changed.

        It goes through the control directory: what agents have written into the clone's configuration is not used. The
        first one may take ``ACW_CLONE_TIMEOUT``, others ``ACW_GIT_TIMEOUT``. ``progress`` is told git's lines
        of progress. With ``refetch``, what the clone has already is fetched again.

        Raises :class:`~workspaces.exceptions.GitError` (:func:`workspaces.failures.classify` says of which kind) and
        ``ConfigTampered``.
        """
        self._control.fetch(
            url, timeout=timeout, stop=stop, progress=progress, refetch=refetch
        )
        return publish(self._control, self.path, stop=stop)

    def follow_url(self, url: str) -> None:
        """Have the clone's ``origin``, where agents push to, be ``url`` too, unless an agent has made it something else.

        The caller has the lock for fetches. Raises :class:`~workspaces.exceptions.GitError`.
        """
        before = self._control.origin()
        if before == url:
            return
        listed = ["config", "--null", "--get-all", "remote.origin.url"]
        if before and self.run(listed, accept=(0, 1)).stdout == f"{before}\0".encode():
            self.run(["config", "--", "remote.origin.url", url])
        self._control.note_origin(url)

    def take_from(
        self, other: Repository, *, timeout: dt.timedelta | None, stop: Stop | None
    ) -> int:
        """The same as a fetch, from another clone of the same remote on this host that was just fetched; no network is used.

        The caller has both locks for fetches. Nothing of the other's agents comes with it.
        """
        self._control.take_from(other._control, timeout=timeout, stop=stop)
        return publish(self._control, self.path, stop=stop)

    def commit_of(self, reference: str) -> str | None:
        """The commit that ``reference`` (a full name, ``refs/…``) leads to, or None."""
        arguments = ["rev-parse", "--verify", "--quiet", f"{reference}^{{commit}}"]
        # 128: the reference is there and what it names is not.
        found = self.run(arguments, accept=(0, 1, 128))
        return found.stdout.decode().strip() or None if found.status == 0 else None

    def start_points(self, branch: str, *, default: str) -> StartPoints:
        """Where a worktree of ``branch`` may begin: :meth:`local_branch` and both :meth:`remote_branch` by one git."""
        names = (f"refs/heads/{branch}", f"{REMOTE}{branch}", f"{REMOTE}{default}")
        asked = "".join(f"{name}^{{commit}}\n" for name in names).encode()
        listed = self.run(["cat-file", "--batch-check=%(objectname)"], stdin=asked)
        said = listed.stdout.decode().rstrip("\n").split("\n")
        local, remote, fallback = (
            None if line.endswith(" missing") else line for line in said
        )
        return StartPoints(local=local, remote=remote, default=fallback)

    def has_branch(self, branch: str) -> bool:
        """Whether agents have the branch, or the remote had it at the last fetch."""
        return self.local_branch(branch) is not None or self.has_remote_branch(branch)

    def local_branch(self, branch: str) -> str | None:
        """The commit of the agents' branch, or None."""
        return self.commit_of(f"refs/heads/{branch}")

    def remote_branch(self, branch: str) -> str | None:
        """The commit that the remote's branch had at the last fetch, or None."""
        return self.commit_of(f"{REMOTE}{branch}")

    def has_remote_branch(self, branch: str) -> bool:
        """Whether the remote had the branch at the last fetch."""
        return (
            clone_files.has_reference(self.path, f"{REMOTE}{branch}")
            or self.remote_branch(branch) is not None
        )

    def find_default_branch(
        self, url: str, *, timeout: dt.timedelta | None = None, stop: Stop | None = None
    ) -> str:
        """Ask the remote for its default branch; "" where it has no branch that was fetched.

        Also makes ``origin/HEAD`` name it, which people and agents use as ``origin``.
        """
        asked = self._control.ask_head(url, timeout=timeout, stop=stop)
        for line in asked.decode(errors="replace").splitlines():
            target, _, name = line.removeprefix("ref: ").partition("\t")
            branch = target.removeprefix("refs/heads/")
            if name == "HEAD" and target != branch and self._is_usable(branch):
                self.run(["symbolic-ref", "--", f"{REMOTE}HEAD", f"{REMOTE}{branch}"])
                return branch
        return ""

    def _is_usable(self, branch: str) -> bool:
        try:
            self.check_branch(branch)
        except InvalidName:
            return False
        return self.remote_branch(branch) is not None

    def check_branch(self, branch: object) -> None:
        """Raise :class:`~workspaces.exceptions.InvalidName` where no branch can have the name."""
        reason = ""
        if not isinstance(branch, str):
            reason = "it is no text"
        elif branch.startswith("-") or branch == "HEAD":
            reason = "it would be taken for something else"
        elif not branch.isprintable() or len(branch) > 200:
            reason = "it has control characters, or more than 200 characters"
        else:
            with contextlib.suppress(GitError):
                self.run(["check-ref-format", f"refs/heads/{branch}"])
                return
            reason = "git does not accept it"
        raise InvalidName(f"branch name {branch!r}: {reason}")
