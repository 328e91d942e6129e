"""What work would be lost if a worktree were removed: the question before every removal.

The clone stays, and with it every branch. What goes is the directory, the worktree's HEAD and the log of
where HEAD has been. Still, commits that are not pushed count as well: the clone may go later.

No filter, hook or other command of the repository is run, and nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from workspaces import git, worktrees
from workspaces.exceptions import GitOutputTooLarge
from workspaces.recreatable import is_recreatable
from workspaces.repository import Repository, Stop, without_filters
from workspaces.supervision import STDOUT_MOST

_IN_PROGRESS = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisection",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or am",
    "sequencer": "a sequence of picks",
}
_COMMITS_MOST = 1000
_EXCLUDED_MOST = 20_000
"""Bounds the length of a command; what is beyond it is reported rather than lost."""
_LISTING_MOST = 64 * 1024 * 1024
_LOG_MOST = 64 * 1024 * 1024
_GITLINK = b"160000"


def unsaved_work(
    repository: Repository,
    path: Path,
    *,
    at: Path | None = None,
    stop: Stop | None = None,
) -> list[str]:
    """What the worktree of ``path`` has that is nowhere else, each in words; empty: it can go.

    Its files are looked for in ``at`` where they were moved there. Where they are gone, what is left
    to lose are commits that no branch has. Raises :class:`~workspaces.exceptions.GitError`.
    """
    directory = at or path
    admin = worktrees.registration(repository, path)
    if not os.path.lexists(directory):
        return (
            []
            if admin is None
            else _Look(admin, directory, stop).commits_on_no_branch()
        )
    if admin is None or not worktrees.points_back(directory, admin):
        return [
            "git does not know the directory as this worktree, so it cannot be checked"
        ]
    look = _Look(admin, directory, stop)
    return [
        *look.operations(),
        *look.changes(),
        *look.hidden(),
        *look.unpushed_commits(),
        *look.commits_on_no_branch(),
        *look.stashes(),
    ]


def unpushed_branches(repository: Repository, *, stop: Stop | None = None) -> list[str]:
    """What the clone itself has that the remote had not at the last fetch, each in words."""
    found = []
    refs = repository.run(
        ["for-each-ref", "--format=%(refname)", "refs/heads", "refs/stash"]
    )
    for ref in refs.stdout.decode(errors="surrogateescape").splitlines():
        arguments = ["rev-list", "--max-count=1", ref, "--not", "--remotes"]
        if repository.run(arguments, stop=stop).stdout:
            found.append(_printable(ref))
    return [f"commits that are not pushed on {_named(found)}"] if found else []


@dataclass(frozen=True, slots=True)
class _Look:
    admin: Path
    directory: Path
    stop: Stop | None

    def _git(
        self, *arguments: str, accept: Iterable[int] = (0,), most: int = STDOUT_MOST
    ) -> bytes:
        return git.run(
            arguments,
            git_dir=self.admin,
            accept=tuple(accept),
            stop=self.stop,
            most=most,
        ).stdout

    def _on_files(self, *arguments: str) -> list[bytes]:
        result = git.run(
            arguments,
            cwd=self.directory,
            git_dir=self.admin,
            work_tree=self.directory,
            config=without_filters(self.admin),
            stop=self.stop,
            most=_LISTING_MOST,
        )
        return [entry for entry in result.stdout.split(b"\0") if entry]

    def operations(self) -> list[str]:
        return [
            f"{what} in progress"
            for name, what in _IN_PROGRESS.items()
            if os.path.lexists(self.admin / name)
        ]

    def changes(self) -> list[str]:
        """What ``git status`` shows, and ignored files that no tool makes again."""
        changed, untracked, ignored = [], [], []
        try:
            entries = self._on_files(
                "status",
                "--porcelain",
                "-z",
                "--no-renames",
                "--untracked-files=normal",
                "--ignored=matching",
                # Within a submodule, git would run that one's own filters; see hidden().
                "--ignore-submodules=dirty",
            )
        except GitOutputTooLarge:
            return ["more changed files than can be listed"]
        for entry in entries:
            code, name = entry[:2], os.fsdecode(entry[3:])
            if code == b"??":
                untracked.append(name)
            elif code != b"!!":
                changed.append(name)
            elif not is_recreatable(name):
                ignored.append(name)
        return [
            *_counted(changed, "uncommitted change"),
            *_counted(untracked, "untracked file"),
            *_counted(ignored, "ignored file"),
        ]

    def hidden(self) -> list[str]:
        """What ``git status`` is told not to look at, and repositories within."""
        hidden, nested = [], []
        try:
            entries = self._on_files("ls-files", "-z", "-v", "--stage")
        except GitOutputTooLarge:
            return ["more files than can be listed"]
        for entry in entries:
            head, _, raw_name = entry.partition(b"\t")
            tag, mode, *_ = head.split(b" ")
            name = os.fsdecode(raw_name)
            if mode == _GITLINK and os.path.lexists(self.directory / name / ".git"):
                nested.append(name)
            elif (tag.islower() or tag == b"S") and os.path.lexists(
                self.directory / name
            ):
                hidden.append(name)
        return [
            *_counted(
                hidden,
                "file that git is told not to compare",
                "files that git is told not to compare",
            ),
            *_counted(
                nested,
                "submodule with a repository of its own",
                "submodules with repositories of their own",
            ),
        ]

    def unpushed_commits(self) -> list[str]:
        if not self._git("rev-parse", "--verify", "--quiet", "HEAD", accept=(0, 1)):
            return []
        commits = self._commits("HEAD", "--not", "--remotes")
        return _counted(
            commits, "commit that is not pushed", "commits that are not pushed"
        )

    def commits_on_no_branch(self) -> list[str]:
        """Commits that HEAD was at and that neither a branch nor a branch's log leads to."""
        try:
            visited = self._logged("HEAD")
        except GitOutputTooLarge:
            return ["more moves of HEAD than can be checked"]
        kept = ["--not", "--remotes", "--branches"]
        suspects = [
            batch
            for start in range(0, len(visited), _COMMITS_MOST)
            if self._commits(*(batch := visited[start : start + _COMMITS_MOST]), *kept)
        ]
        if not suspects:
            return []
        # An amended or rebased commit is still in the log of its branch, which stays with the clone.
        branches = self._git(
            "for-each-ref", "--format=%(refname)", "refs/heads"
        ).decode(errors="surrogateescape")
        logged = [
            commit
            for ref in branches.splitlines()
            for commit in self._logged(ref, f"--max-count={_COMMITS_MOST}")
        ]
        kept += logged[:_EXCLUDED_MOST]
        # One commit may be found by several batches.
        lost = list(
            dict.fromkeys(
                commit for batch in suspects for commit in self._commits(*batch, *kept)
            )
        )
        return _counted(lost, "commit on no branch", "commits on no branch")

    def stashes(self) -> list[str]:
        branch = (
            self._git("symbolic-ref", "--quiet", "--short", "HEAD", accept=(0, 1))
            .decode(errors="surrogateescape")
            .strip()
        )
        if not self._git(
            "rev-parse", "--verify", "--quiet", "refs/stash", accept=(0, 1)
        ):
            return []
        subjects = self._git(
            "log", "--walk-reflogs", "-z", "--format=%gs", "refs/stash", "--"
        )
        begins = (
            f"WIP on {branch or '(no branch)'}:",
            f"On {branch or '(no branch)'}:",
        )
        mine = [
            subject
            for subject in subjects.decode(errors="surrogateescape").split("\0")
            if subject.startswith(begins)
        ]
        return _counted(mine, "stash", "stashes")

    def _logged(self, ref: str, *options: str) -> list[str]:
        """Where ``ref`` has been, newest first."""
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
        found = self._git(
            "rev-list",
            "--abbrev-commit",
            f"--max-count={_COMMITS_MOST}",
            *revisions,
            "--",
        )
        return found.decode().split()


def _counted(found: list[str], one: str, many: str = "") -> list[str]:
    if not found:
        return []
    what = one if len(found) == 1 else many or f"{one}s"
    return [f"{len(found)} {what} ({_named(found)})"]


def _named(found: list[str], most: int = 3) -> str:
    named = ", ".join(_printable(name) for name in found[:most])
    return f"{named}, …" if len(found) > most else named


def _printable(name: str, longest: int = 80) -> str:
    """File and branch names are an agent's: no control characters go into what people read."""
    shown = "".join(
        char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name
    )
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
