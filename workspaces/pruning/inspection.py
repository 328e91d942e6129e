"""The questions about one worktree that git answers; :mod:`workspaces.pruning.contents` puts the answers together.

No filter, hook or other command of the repository is run, and nothing is written.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from workspaces import git, worktrees
from workspaces.archiving import registration
from workspaces.exceptions import GitError, GitStopped
from workspaces.plumbing import view
from workspaces.plumbing.supervision import STDOUT_MOST
from workspaces.pruning.recreatable import is_recreatable
from workspaces.repository import Repository, Stop

_IN_PROGRESS = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisection",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or am",
    "sequencer": "a sequence of picks",
}
COMMITS_MOST = 1000
"""Commits that are listed; there may be more."""
_EXCLUDED_MOST = 20_000
"""Bounds the length of a command; what is beyond it is reported rather than lost."""
_LISTING_MOST = 64 * 1024 * 1024
_LOG_MOST = 64 * 1024 * 1024
_GITLINK = b"160000"

# The changes of so many commits on either side are compared at most, for so long: it is only said, and nothing depends on it.
_COMPARED_MOST = 200
_COMPARED_WITH_MOST = 2000
_COMPARED_FOR = dt.timedelta(seconds=10)


@dataclass(slots=True)
class Files:
    """Names of files as git lists them (``a/b/``: a whole directory), by what they are to it."""

    changed: list[str] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    recreatable: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Unseen:
    """Files that git is told not to compare, and submodules that are repositories of their own."""

    hidden: list[str] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Look:
    """A look at the worktree of ``clone`` whose registration is ``admin`` and whose files are in ``directory``.

    Every question raises :class:`~workspaces.exceptions.GitError`; ``GitOutputTooLarge`` means that there is more than can be
    listed.
    """

    clone: Path
    admin: Path
    directory: Path
    stop: Stop | None = None

    def _git(
        self,
        *arguments: str,
        accept: Iterable[int] = (0,),
        most: int = STDOUT_MOST,
        timeout: dt.timedelta | None = None,
    ) -> bytes:
        return git.run(
            arguments,
            git_dir=self.admin,
            accept=tuple(accept),
            stop=self.stop,
            most=most,
            timeout=timeout,
        ).stdout

    def _on_files(self, *arguments: str) -> list[bytes]:
        with view.opened(self.clone, self.admin, self.directory) as seen:
            result = seen.run(arguments, stop=self.stop, most=_LISTING_MOST)
        return [entry for entry in result.stdout.split(b"\0") if entry]

    def operations(self) -> list[str]:
        """What was begun and not ended, such as ``a merge``."""
        return [
            what
            for name, what in _IN_PROGRESS.items()
            if os.path.lexists(self.admin / name)
        ]

    def files(self) -> Files:
        """What ``git status`` shows, ignored files too."""
        files = Files()
        for entry in self._on_files(
            "status",
            "--porcelain",
            "-z",
            "--no-renames",
            "--untracked-files=normal",
            "--ignored=matching",
            # Within a submodule, git would run that one's own filters; see unseen().
            "--ignore-submodules=dirty",
        ):
            code, name = entry[:2], os.fsdecode(entry[3:])
            if code == b"??":
                files.untracked.append(name)
            elif code != b"!!":
                files.changed.append(name)
            elif is_recreatable(name):
                files.recreatable.append(name)
            else:
                files.ignored.append(name)
        return files

    def unseen(self) -> Unseen:
        """What ``git status`` is told not to look at, and repositories within."""
        unseen = Unseen()
        for entry in self._on_files("ls-files", "-z", "-v", "--stage"):
            head, _, raw_name = entry.partition(b"\t")
            tag, mode, *_ = head.split(b" ")
            name = os.fsdecode(raw_name)
            if mode == _GITLINK and os.path.lexists(self.directory / name / ".git"):
                unseen.nested.append(name)
            elif (tag.islower() or tag == b"S") and os.path.lexists(
                self.directory / name
            ):
                unseen.hidden.append(name)
        return unseen

    def unpushed_commits(self) -> list[str]:
        """Those of HEAD that the remote had on no branch at the last fetch, with their titles, newest first."""
        if not self._has("HEAD"):
            return []
        return self._titled("HEAD", "--not", "--remotes")

    def merged(self) -> int:
        """How many of those the remote's default branch has as other commits that change the same."""
        upstream = "refs/remotes/origin/HEAD"
        if not self._has(upstream) or not self._has("HEAD"):
            return 0
        try:
            for commits, most in (
                ((upstream, "^HEAD"), _COMPARED_WITH_MOST),
                (("HEAD", f"^{upstream}"), _COMPARED_MOST),
            ):
                asked = ("rev-list", "--count", f"--max-count={most + 1}", *commits)
                if not 0 < int(self._git(*asked, "--")) <= most:
                    return 0
            found = self._git("cherry", upstream, "HEAD", timeout=_COMPARED_FOR)
        except GitStopped:
            raise
        except GitError:
            return 0
        return sum(line.startswith(b"-") for line in found.splitlines())

    def commits_on_no_branch(self) -> list[str]:
        """Commits that HEAD was at and that neither a branch nor a branch's log leads to."""
        visited = self._logged("HEAD")
        kept = ["--not", "--remotes", "--branches"]
        suspects = [
            batch
            for start in range(0, len(visited), COMMITS_MOST)
            if self._commits(*(batch := visited[start : start + COMMITS_MOST]), *kept)
        ]
        if not suspects:
            return []
        # An amended or rebased commit is still in the log of its branch, which stays with the clone.
        kept += self._logged("--branches", f"--max-count={_EXCLUDED_MOST}")
        # One commit may be found by several batches.
        return list(
            dict.fromkeys(
                commit for batch in suspects for commit in self._titled(*batch, *kept)
            )
        )

    def stashes(self) -> list[str]:
        """Those that were made on its branch; they are the clone's, and stay with it."""
        if not self._has("refs/stash"):
            return []
        subjects = self._git(
            "log", "--walk-reflogs", "-z", "--format=%gs", "refs/stash", "--"
        )
        begins = tuple(
            f"{made} {branch}:"
            for branch in self._branches()
            for made in ("WIP on", "On")
        )
        return [
            subject
            for subject in subjects.decode(errors="surrogateescape").split("\0")
            if subject.startswith(begins)
        ]

    def _branches(self) -> list[str]:
        """The branch that it is on, and the one that what is in progress comes back to, as stashes name them."""
        on = self._git("symbolic-ref", "--quiet", "--short", "HEAD", accept=(0, 1))
        notes = [self.admin / os.fsdecode(note) for note in registration.COMES_BACK_TO]
        found = [on.strip() or b"(no branch)", *map(worktrees.read_line, notes)]
        return [
            os.fsdecode(branch.removeprefix(b"refs/heads/"))
            for branch in found
            if branch
        ]

    def _has(self, reference: str) -> bool:
        arguments = ("rev-parse", "--verify", "--quiet", reference)
        return bool(self._git(*arguments, accept=(0, 1, 128)))

    def _logged(self, ref: str, *options: str) -> list[str]:
        """Where ``ref`` has been, newest first; ``--branches``: where any branch has."""
        log = self._git(
            "rev-list",
            "--walk-reflogs",
            *options,
            ref,
            "--",
            accept=(0, 128),
            most=_LOG_MOST,
        )
        return list(dict.fromkeys(log.decode().split()))

    def _commits(self, *revisions: str) -> list[str]:
        found = self._git("rev-list", f"--max-count={COMMITS_MOST}", *revisions, "--")
        return found.decode().split()

    def _titled(self, *revisions: str) -> list[str]:
        found = self._git(
            "log",
            "-z",
            "--no-show-signature",
            # No more of a title than is shown.
            "--format=%h %<(80,trunc)%s",
            f"--max-count={COMMITS_MOST}",
            *revisions,
            "--",
        )
        titles = found.decode(errors="surrogateescape").split("\0")
        return [title.strip() for title in titles if title]


def unpushed_branches(repository: Repository, *, stop: Stop | None = None) -> list[str]:
    """The references of the clone itself that have what the remote had not at the last fetch."""
    found = []
    refs = repository.run(
        ["for-each-ref", "--format=%(refname)", "refs/heads", "refs/stash"]
    )
    for ref in refs.stdout.decode(errors="surrogateescape").splitlines():
        arguments = ["rev-list", "--max-count=1", ref, "--not", "--remotes"]
        if repository.run(arguments, stop=stop).stdout:
            found.append(ref)
    return found
