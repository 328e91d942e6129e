"""The control directory of a clone: the repository of ours that its fetches go through.

Nothing in it is an agent's: it has the configuration that is written here and the remote's branches as of the last
fetch. Objects go where the clone has them, so that publishing what came is no more than moving references. What agents
write into the clone's configuration about remotes, URLs and commands has no say in a fetch.

It can be made anew at any time, and is, where it is missing or is not as it was made.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from django.conf import settings

from workspaces import git, paths
from workspaces.exceptions import ConfigTampered, GitFailed
from workspaces.plumbing import clone_files, complaints, git_environment

REMOTE = "refs/remotes/origin/"
"""Where the remote's branches are, here and in the clone."""

# In the clone, the name above them stands for one of them.
_BELOW_HEAD = f"{REMOTE}HEAD/".encode()

REFSPEC = f"+refs/heads/*:{REMOTE}*"
_OF_A_SIBLING = f"+{REMOTE}*:{REMOTE}*"

PACK_OVER = 200
"""References beyond which they are packed: each would be a file to read at every fetch."""

_HEAD = b"ref: refs/heads/main\n"
# Seen from the directory of its own objects, of which it has none. What serves a sibling reads them there; and both may be
# moved together.
_ALTERNATES = b"../../repository.git/objects\n"
_CONFIG = git_environment.as_file(
    {
        "core.repositoryFormatVersion": "0",
        "core.bare": "true",
        "core.logAllRefUpdates": "false",
        # What a loss of power takes of its references is made anew.
        "core.fsync": "-reference",
    }
)
_REFETCH_SINCE = (2, 36)
# Of a few hundred thousand branches.
_LISTED_MOST = 64 * 1024 * 1024
_URL_MOST = 8 * 1024


@dataclass(frozen=True)
class Control:
    """The control directory in the workspace's ``directory``; whoever uses it has the lock for fetches."""

    directory: Path

    @cached_property
    def path(self) -> Path:
        return paths.control_path(self.directory)

    @cached_property
    def _clone(self) -> Path:
        return paths.repository_path(self.directory)

    def fetch(
        self,
        url: str,
        *,
        timeout: dt.timedelta | None = None,
        stop: Callable[[], bool] | None = None,
        progress: Callable[[str], None] | None = None,
        refetch: bool = False,
    ) -> None:
        """Bring its branches up to date with those of the remote, and the clone's objects with them.

        The first fetch may take ``ACW_CLONE_TIMEOUT``. With ``refetch``, all objects are fetched again.
        Raises :class:`~workspaces.exceptions.GitError`, ``GitDamaged`` where git complained of damaged objects,
        and ``ConfigTampered`` where the clone's objects are kept elsewhere.
        """
        if refetch:
            self._make({})
        self._fetch(
            url,
            REFSPEC,
            timeout=timeout,
            stop=stop,
            progress=progress,
            # Older ones find out themselves what is missing, though not what is there and damaged.
            more=["--refetch"] if refetch and git.version() >= _REFETCH_SINCE else [],
        )

    def take_from(
        self,
        other: Control,
        *,
        timeout: dt.timedelta | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> None:
        """The same from the control directory of a sibling, another clone of the same remote on this host.

        The objects lie where agents can write. Git takes none whose hash is not what it is asked for.
        """
        refuse_diversions(self._clone)
        if not self.ensure() and self.references() == other.references():
            return  # most often nothing has come
        # Whatever the operator allows for remotes: this is none.
        self._fetch(
            str(other.path),
            _OF_A_SIBLING,
            timeout=timeout,
            stop=stop,
            protocols=["file"],
        )

    def ask_head(
        self,
        url: str,
        *,
        timeout: dt.timedelta | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> bytes:
        """What ``git ls-remote --symref`` says of the remote's ``HEAD``."""
        self.ensure()
        options = ["--symref", "--upload-pack=git-upload-pack"]
        return git.run(
            ["ls-remote", *options, "--", url, "HEAD"],
            git_dir=self.path,
            timeout=timeout,
            stop=stop,
        ).stdout

    def references(self) -> dict[bytes, bytes]:
        """The remote's branches at the last fetch: objects by the full names that they have in the clone.

        Without those called "HEAD/…": git has no room for them beside ``origin/HEAD``.
        """
        branches = listed(self.path)
        return {
            name: branches[name]
            for name in branches
            if not name.startswith(_BELOW_HEAD)
        }

    def origin(self) -> str:
        """The remote that the clone's ``origin`` was made to be; "" where that is not known."""
        written = clone_files.read(f"{self.path}/origin", most=_URL_MOST)
        return (written or b"").decode(errors="replace")

    def note_origin(self, url: str) -> None:
        """Note that it was made to be ``url``."""
        (self.path / "origin").write_bytes(url.encode())

    def ensure(self) -> bool:
        """See that it is there and as it was made; whether it had to be made.

        What the clone knows of the remote's branches is taken over then, so that not everything is fetched again.
        """
        if self._is_sound():
            return False
        known = clone_files.references(self._clone, REMOTE) or {}
        self._make({name: known[name] for name in known if clone_files.is_name(name)})
        return True

    def _is_sound(self) -> bool:
        path = str(self.path)
        return (
            clone_files.read(f"{path}/config", most=len(_CONFIG)) == _CONFIG
            and not os.path.islink(path)
            # No fetch of ours makes one, and with a bad one in it none works.
            and not os.path.lexists(f"{path}/shallow")
        )

    def _make(self, references: Mapping[bytes, bytes]) -> None:
        """Put a new one in its place, with these references."""
        new = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}")
        new.mkdir(mode=0o700)
        try:
            for name in ("refs/heads", "objects/info", "objects/pack"):
                (new / name).mkdir(parents=True)
            (new / "HEAD").write_bytes(_HEAD)
            (new / "config").write_bytes(_CONFIG)
            (new / "objects/info/alternates").write_bytes(_ALTERNATES)
            (new / "origin").write_bytes(self.origin().encode())
            lines = [b"%b %b\n" % (references[name], name) for name in references]
            if lines:
                (new / "packed-refs").write_bytes(b"".join(lines))
            self._remove()
            new.rename(self.path)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise

    def _remove(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            if self.path.is_symlink() or not self.path.is_dir():
                self.path.unlink()
            else:
                shutil.rmtree(self.path)

    def _fetch(
        self,
        url: str,
        refspec: str,
        *,
        timeout: dt.timedelta | None,
        stop: Callable[[], bool] | None,
        protocols: Sequence[str] | None = None,
        progress: Callable[[str], None] | None = None,
        more: Sequence[str] = (),
    ) -> None:
        refuse_diversions(self._clone)
        first = self.ensure() or not self._has_references()
        path = self.path

        def attempt() -> None:
            done = git.run(
                [
                    "fetch",
                    "--quiet" if progress is None else "--progress",
                    "--prune",
                    "--no-tags",
                    "--no-write-fetch-head",
                    "--no-auto-maintenance",
                    "--no-recurse-submodules",
                    "--upload-pack=git-upload-pack",
                    *more,
                    # It is waited for before anything is begun: see git.run of largest_file.
                    "--stdin",
                    "--",
                    url,
                ],
                git_dir=path,
                objects=self._clone / "objects",
                configured=True,
                protocols=protocols,
                stdin=f"{refspec}\n".encode(),
                largest_file=settings.ACW_GIT_MAX_FILE,
                timeout=timeout,
                longest=settings.ACW_CLONE_TIMEOUT if first else None,
                stop=stop,
                progress=progress,
            )
            complaints.refuse_half_done(done.stderr)

        try:
            attempt()
        except GitFailed as error:
            # Ours to mend, whatever happened to it; what the clone or the remote has is not.
            if str(path) not in error.stderr and not self._has_broken_references():
                raise complaints.in_our_words(error) from None
            self._make({})
            attempt()

    def _has_references(self) -> bool:
        path = str(self.path)
        return os.path.exists(f"{path}/{REMOTE}") or os.path.exists(
            f"{path}/packed-refs"
        )

    def _has_broken_references(self) -> bool:
        return bool(clone_files.remove_unreadable(self.path, "refs/"))


def listed(repository: Path) -> dict[bytes, bytes]:
    """The remote's branches as a repository has them: objects by full name."""
    known = clone_files.references(repository, REMOTE)
    if known is not None:
        return known
    arguments = ["for-each-ref", "--format=%(refname)%00%(objectname)%00", REMOTE]
    fields = git.run(arguments, git_dir=repository, most=_LISTED_MOST).stdout.split(
        b"\0"
    )
    names = [name.lstrip(b"\n") for name in fields[::2]]
    refs = dict(zip(names, fields[1::2], strict=False))
    refs.pop(f"{REMOTE}HEAD".encode(), None)  # another name for one of them
    return refs


def refuse_diversions(clone: Path) -> None:
    """Raise :class:`~workspaces.exceptions.ConfigTampered` where git would read and write outside of the clone."""
    found = clone_files.diversions(clone)
    if found:
        raise ConfigTampered(
            f"the clone at {clone} has files that lead out of it, and nobody but an agent puts them there: "
            f"{', '.join(found)}; look at them, and put what they stand for in their place"
        )
