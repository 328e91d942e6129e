"""One clone on this host's disk: what is asked of it and done to it through git.

Knows no rows. Its remote's branches are kept as ``refs/remotes/origin/*``, apart from the branches
that agents work on: a fetch never touches those.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.redaction import redact
from workspaces import clone_files, git, locking, paths
from workspaces.exceptions import CloneMissing, GitError, InvalidName, RefusedUrl
from workspaces.git import Result

Stop = Callable[[], bool]

REFSPEC = "+refs/heads/*:refs/remotes/origin/*"
_REMOTE = "refs/remotes/origin/"
# Of curl's: by whom it goes, who is believed to be the host, and which of this host's files are sent or written.
_DETOUR = re.compile(
    r"http\.(?:.*\.)?(?:proxy.*|ssl.*|schannel.*|curloptresolve|cookiefile|savecookies)",
    re.DOTALL,
)
_FILTER_OFF = {"clean": "", "smudge": "", "process": "", "required": "false"}


@dataclass(frozen=True, slots=True)
class Repository:
    """The clone of a workspace, in the workspace's ``directory``."""

    directory: Path

    @property
    def path(self) -> Path:
        return paths.repository_path(self.directory)

    @contextlib.contextmanager
    def locked(self, *, wait: dt.timedelta, stop: Stop | None = None) -> Iterator[None]:
        """Alone add and remove worktrees during the block; see :func:`workspaces.locking.locked`."""
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
        stop: Stop | None = None,
        accept: Collection[int] = (0,),
    ) -> Result:
        """Run a git command on this repository; see :func:`workspaces.git.run`."""
        return git.run(
            arguments, git_dir=self.path, config=config, stop=stop, accept=accept
        )

    def create(self, url: str) -> None:
        """Make it, empty, with this remote. Bare: every branch is free to be a worktree's."""
        git.run(["init", "--quiet", "--bare", "--template=", "--", str(self.path)])
        for key, value in {
            "remote.origin.url": url,
            "remote.origin.fetch": REFSPEC,
            # In a bare repository, git would not keep the logs that lost commits are found by.
            "core.logAllRefUpdates": "true",
            # An agent's own git must not forget worktrees whose disk is away for a while.
            "gc.worktreePruneExpire": "never",
        }.items():
            self.run(["config", "--", key, value])

    def fetch(
        self, url: str, *, timeout: dt.timedelta | None, stop: Stop | None
    ) -> int:
        """Bring ``refs/remotes/origin/*`` up to date; return how many branches changed.

        The URL is given each time: what an agent may have written into the repository's
        configuration about the remote is not used. Raises
        :class:`~workspaces.exceptions.RefusedUrl` where that would lead elsewhere.
        """
        self._refuse_redirected(url, timeout=timeout, stop=stop)
        before = self._remote_refs()
        git.run(
            [
                "fetch",
                "--quiet",
                "--prune",
                "--no-tags",
                "--no-write-fetch-head",
                "--no-auto-maintenance",
                "--no-recurse-submodules",
                "--upload-pack=git-upload-pack",
                "--",
                url,
                REFSPEC,
            ],
            git_dir=self.path,
            timeout=timeout,
            stop=stop,
        )
        after = self._remote_refs()
        return sum(before.get(name) != after.get(name) for name in before | after)

    def _refuse_redirected(
        self, url: str, *, timeout: dt.timedelta | None, stop: Stop | None
    ) -> None:
        """Raise RefusedUrl where the clone's configuration, open to agents, makes another URL of it."""
        if clone_files.keeps_urls(self.path):
            return
        self._refuse_detour(url, timeout=timeout, stop=stop)
        found = git.run(
            ["ls-remote", "--get-url", "--", url],
            git_dir=self.path,
            timeout=timeout,
            stop=stop,
        ).stdout
        if found == os.fsencode(f"{url}\n"):
            return
        text = redact(found.decode(errors="replace").removesuffix("\n"))
        shown = "".join(char if char.isprintable() else "\ufffd" for char in text)
        raise RefusedUrl(
            f"the clone's configuration turns {redact(url)} into {shown[:200]!r}; look in"
            f" {self.path / 'config'} for url.….insteadOf and remote.….url, and remove those"
        )

    def _refuse_detour(
        self, url: str, *, timeout: dt.timedelta | None, stop: Stop | None
    ) -> None:
        """Raise RefusedUrl where it puts somebody between, or turns off the check of who answers.

        None of that can be overridden: what is set for one URL beats what is set for all.
        """
        if not url.lower().startswith(("http://", "https://")):
            return
        listed = git.run(
            ["config", "--null", "--show-scope", "--name-only", "--list"],
            git_dir=self.path,
            timeout=timeout,
            stop=stop,
        ).stdout.decode(errors="replace")
        fields = listed.split("\0")
        for scope, key in zip(fields[::2], fields[1::2], strict=False):
            # "command" is what we give it ourselves.
            if scope != "command" and (
                _DETOUR.fullmatch(key) or key == f"remote.{url}.proxy"
            ):
                raise RefusedUrl(
                    f"the clone's configuration sets {redact(key)!r}, which could lead the fetch elsewhere; remove it"
                    f" from {self.path / 'config'}. A proxy is taken from the environment, as https_proxy"
                )

    def _remote_refs(self) -> dict[bytes, bytes]:
        known = clone_files.references(self.path, _REMOTE)
        if known is not None:
            return known
        form = "--format=%(refname) %(objectname)"
        listed = self.run(["for-each-ref", form, _REMOTE]).stdout.splitlines()
        refs = dict(line.split(b" ") for line in listed)
        refs.pop(f"{_REMOTE}HEAD".encode(), None)  # another name for one of them
        return refs

    def commit_of(self, reference: str) -> str | None:
        """The commit that ``reference`` (a full name, ``refs/…``) leads to, or None."""
        arguments = ["rev-parse", "--verify", "--quiet", f"{reference}^{{commit}}"]
        # 128: the reference is there and what it names is not.
        found = self.run(arguments, accept=(0, 1, 128))
        return found.stdout.decode().strip() or None if found.status == 0 else None

    def local_branch(self, branch: str) -> str | None:
        """The commit of the agents' branch, or None."""
        return self.commit_of(f"refs/heads/{branch}")

    def remote_branch(self, branch: str) -> str | None:
        """The commit that the remote's branch had at the last fetch, or None."""
        return self.commit_of(f"{_REMOTE}{branch}")

    def has_remote_branch(self, branch: str) -> bool:
        """Whether the remote had the branch at the last fetch."""
        return (
            clone_files.has_reference(self.path, f"{_REMOTE}{branch}")
            or self.remote_branch(branch) is not None
        )

    def find_default_branch(
        self, url: str, *, timeout: dt.timedelta | None = None, stop: Stop | None = None
    ) -> str:
        """Ask the remote for its default branch; "" where it has no branch that was fetched.

        Also makes ``origin/HEAD`` name it, which people and agents use as ``origin``.
        """
        self._refuse_redirected(url, timeout=timeout, stop=stop)
        asked = git.run(
            [
                "ls-remote",
                "--symref",
                "--upload-pack=git-upload-pack",
                "--",
                url,
                "HEAD",
            ],
            git_dir=self.path,
            timeout=timeout,
            stop=stop,
        )
        for line in asked.stdout.decode(errors="replace").splitlines():
            target, _, name = line.removeprefix("ref: ").partition("\t")
            branch = target.removeprefix("refs/heads/")
            if name == "HEAD" and target != branch and self._is_usable(branch):
                self.run(["symbolic-ref", "--", f"{_REMOTE}HEAD", f"{_REMOTE}{branch}"])
                return branch
        return ""

    def _is_usable(self, branch: str) -> bool:
        try:
            self.check_branch(branch)
        except InvalidName:
            return False
        return self.remote_branch(branch) is not None

    def check_branch(self, branch: str) -> None:
        """Raise :class:`~workspaces.exceptions.InvalidName` where no branch can have the name."""
        reason = ""
        if branch.startswith("-") or branch == "HEAD":
            reason = "it would be taken for something else"
        elif not branch.isprintable() or len(branch) > 200:
            reason = "it has control characters, or more than 200 characters"
        else:
            with contextlib.suppress(GitError):
                self.run(["check-ref-format", f"refs/heads/{branch}"])
                return
            reason = "git does not accept it"
        raise InvalidName(f"branch name {branch!r}: {reason}")


def without_filters(git_dir: Path) -> dict[str, str]:
    """The configuration that turns off every filter that is configured as seen from ``git_dir``.

    Git runs filters, commands of the repository's own configuration, where it compares or checks
    out files; that configuration is open to the agents.
    """
    pattern = r"^filter\..*\.(clean|smudge|process|required)$"
    arguments = ["config", "--null", "--name-only", "--get-regexp", pattern]
    found = git.run(arguments, git_dir=git_dir, accept=(0, 1))
    keys = found.stdout.decode(errors="surrogateescape").split("\0")
    drivers = {key.rpartition(".")[0] for key in keys if key}
    return {
        f"{driver}.{what}": off
        for driver in drivers
        for what, off in _FILTER_OFF.items()
    }
