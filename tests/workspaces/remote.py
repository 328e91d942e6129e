"""A real remote for workspaces, and a plain git to look at clones with."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.workspaces.witness import plant
from workspaces import cloning
from workspaces.models import Workspace
from workspaces.repository import Repository, Stop

WHO = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")


def git(*arguments: str, cwd: Path | None = None) -> str:
    """Run git as an agent or a developer would; return what it printed."""
    done = subprocess.run(
        ["git", *WHO, *arguments], cwd=cwd, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def make_template(directory: Path) -> None:
    """What every remote begins as; made once, since making it takes long."""
    bare, work = str(directory / "remote.git"), str(directory / "work")
    git("init", "--quiet", "--bare", "--template=", "--initial-branch=main", bare)
    git("init", "--quiet", "--template=", "--initial-branch=main", work)
    git("remote", "add", "origin", "../remote.git", cwd=directory / "work")
    Remote(directory).push("README", "hello\n")


class Remote:
    """A bare repository with a commit on ``main``, and a clone in which somebody else works."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "remote.git"
        self.work = directory / "work"

    @property
    def url(self) -> str:
        return f"file://{self.path}"

    def push(self, name: str, content: str = "content\n", branch: str = "main") -> str:
        """Commit a file to the branch and push it; return the commit."""
        git("checkout", "--quiet", "-B", branch, cwd=self.work)
        (self.work / name).write_text(content)
        git("add", "--", name, cwd=self.work)
        git("commit", "--quiet", "--message", name, cwd=self.work)
        git("push", "--quiet", "--force", "origin", branch, cwd=self.work)
        return git("rev-parse", "HEAD", cwd=self.work)

    def delete_branch(self, branch: str) -> None:
        git("push", "--quiet", "origin", "--delete", branch, cwd=self.work)
        git("checkout", "--quiet", "--detach", cwd=self.work)
        git("branch", "--quiet", "-D", branch, cwd=self.work)

    def vanish(self) -> None:
        self.path.rename(self.path.with_suffix(".gone"))

    def come_back(self) -> None:
        self.path.with_suffix(".gone").rename(self.path)


class Cloned:
    """The first clone of a remote as it begins, as git has made it, and copies of that: nearly all tests have one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._make = cloning._clone
        self._branch = self._url = ""

    def copy(
        self,
        workspace: Workspace,
        unfinished: Path,
        progress: cloning._Progress,
        *,
        stop: Stop,
    ) -> str:
        """What making a clone of the workspace's remote in the directory would come to."""
        first = Repository(self._directory)
        there = Repository(unfinished)
        if not self._url:
            self._branch = self._make(workspace, unfinished, progress, stop=stop)
            shutil.copytree(there.path, first.path)
            shutil.copytree(there.control, first.control)
            self._url = workspace.url
            return self._branch
        shutil.copytree(first.path, there.path)
        shutil.copytree(first.control, there.control)
        config = there.path / "config"
        config.write_text(config.read_text().replace(self._url, workspace.url))
        (there.control / "origin").write_text(workspace.url)
        return self._branch


class Counted:
    """An ``ssh`` that takes every host to be this one, and counts how often a remote was asked."""

    def __init__(self, programs: Path) -> None:
        self._log = programs.parent / "contacts"
        plant(
            programs / "ssh",
            f'echo "$*" >> {self._log}',
            "for command; do :; done",
            'exec sh -c "$command"',
        )

    @property
    def contacts(self) -> int:
        return len(self._log.read_text().splitlines()) if self._log.exists() else 0

    def forget(self) -> None:
        self._log.unlink(missing_ok=True)


def commit(worktree: Path, name: str = "work.txt", content: str = "work\n") -> str:
    """Commit a file in an agent's worktree; return the commit."""
    (worktree / name).write_text(content)
    git("add", "--force", "--", name, cwd=worktree)
    git("commit", "--quiet", "--message", name, cwd=worktree)
    return git("rev-parse", "HEAD", cwd=worktree)
