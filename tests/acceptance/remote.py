"""A real git repository that a workspace can be cloned from."""

from __future__ import annotations

import subprocess
from pathlib import Path


class Remote:
    """A bare repository, and a clone of it in which somebody else works."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "remote.git"
        self._work = directory / "work"
        git("init", "--quiet", "--bare", "--initial-branch=main", str(self.path))
        git("clone", "--quiet", str(self.path), str(self._work))
        self.commit("first")

    @property
    def url(self) -> str:
        return f"file://{self.path}"

    def commit(self, name: str) -> str:
        """Push a commit to ``main``; return its hash."""
        (self._work / name).write_text(name)
        self._in_work("checkout", "--quiet", "-B", "main")
        self._in_work("add", name)
        self._in_work("commit", "--quiet", "--message", name)
        self._in_work("push", "--quiet", "origin", "main")
        return self._in_work("rev-parse", "HEAD").strip()

    def vanish(self) -> None:
        self.path.rename(self.path.with_suffix(".gone"))

    def come_back(self) -> None:
        self.path.with_suffix(".gone").rename(self.path)

    def _in_work(self, *arguments: str) -> str:
        who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
        return git("-C", str(self._work), *who, *arguments)


def git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout
