"""A git directory of our own over the objects of a clone: none of the clone's configuration, hooks, replacements or refs count in it.

Objects are named by content, so that whatever else an agent can write there, it can't make another object of one.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from workspaces import git, paths, worktrees
from workspaces.exceptions import GitFailed, NotArchivable
from workspaces.git import Result
from workspaces.plumbing.supervision import STDOUT_MOST
from workspaces.repository import Repository, Stop

_BATCH_BYTES = 256 * 1024 * 1024
"""Bytes that one command is given to store, so that it ends in time."""

_LISTING_MOST = 256 * 1024 * 1024
_SHALLOW_MOST = 16 * 1024 * 1024
_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tbare = true
\tsymlinks = true
\tfilemode = true
\tignorecase = false
\tautocrlf = false
\tprotectHFS = false
\tprotectNTFS = false
[fastimport]
\tunpackLimit = 0
"""
# Beats every .gitattributes: files are written as they were read.
_ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding\n"
# Nothing that was archived is in the disk's cache alone when the original is deleted. Older versions
# of git take no notice, and have packs on the disk anyway.
_DURABLE = {"core.fsync": "all", "core.fsyncMethod": "fsync"}


@dataclass(frozen=True, slots=True)
class Store:
    """``path`` is the git directory, ``objects`` where its objects are; ``stop`` ends every command early."""

    path: Path
    objects: Path
    stop: Stop | None

    def run(
        self,
        *arguments: str,
        stdin: bytes | Path | None = None,
        work_tree: Path | None = None,
        timeout: dt.timedelta | None = None,
        accept: Collection[int] = (0,),
        most: int = STDOUT_MOST,
    ) -> Result:
        """Run a git command on it; see :func:`workspaces.git.run`."""
        try:
            return git.run(
                arguments,
                git_dir=self.path,
                work_tree=work_tree,
                objects=self.objects,
                config=_DURABLE,
                stdin=stdin,
                timeout=timeout,
                stop=self.stop,
                accept=accept,
                most=most,
            )
        except GitFailed as error:
            # Its place is another each time, so that people would be told of the same thing again and again.
            said = error.stderr.replace(f"{self.path}/", "")
            raise GitFailed(error.verb, error.status, stderr=said) from None

    def kinds(self, names: Iterable[str]) -> dict[str, str]:
        """Of these objects those that are there, with their types."""
        asked = "".join(f"{name}\n" for name in names).encode()
        if not asked:
            return {}
        found = self.run(
            "cat-file",
            "--batch-check=%(objectname) %(objecttype)",
            "--buffer",
            stdin=asked,
            most=_LISTING_MOST,
        ).stdout.decode()
        pairs = (line.partition(" ")[::2] for line in found.splitlines())
        return {name: kind for name, kind in pairs if kind != "missing"}

    def blob(self, name: str, *, most: int = STDOUT_MOST) -> bytes:
        """The bytes of a blob, or of ``<commit>:<path>``."""
        return self.run("cat-file", "blob", name, most=most).stdout

    def commit_of(self, ref: str) -> str:
        """The commit that ``ref`` of this directory leads to; raises GitFailed where there is none."""
        return (
            self.run("rev-parse", "--verify", f"{ref}^{{commit}}")
            .stdout.decode()
            .strip()
        )

    @contextlib.contextmanager
    def importing(self) -> Iterator[Import]:
        """What is written to :class:`Import` in the block is stored by its end."""
        with tempfile.TemporaryDirectory(dir=self.path.parent) as directory:
            stream = Import(self, Path(directory, "stream"))
            try:
                yield stream
                stream.flush()
            finally:
                stream.close()


class Import:
    """A stream of commands to ``git fast-import``, in batches of some size."""

    def __init__(self, store: Store, path: Path) -> None:
        self._store = store
        self._path = path
        self._stream: BinaryIO = path.open("w+b")

    def blob(self, chunks: Iterable[bytes], size: int) -> None:
        """Store ``size`` bytes as a blob."""
        self.write(b"blob\ndata %d\n" % size)
        written = 0
        for chunk in chunks:
            written += len(chunk)
            self.write(chunk)
        if written != size:
            raise NotArchivable(
                "a file changed its size while it was read; try again when nobody works there"
            )
        self.write(b"\n")
        if self._stream.tell() > _BATCH_BYTES:
            self.flush()

    def write(self, commands: bytes) -> None:
        self._stream.write(commands)

    def flush(self) -> None:
        """Have git store what was written so far."""
        if self._stream.tell():
            self._stream.flush()
            self._store.run("fast-import", "--quiet", stdin=self._path)
            self._stream.seek(0)
            self._stream.truncate()

    def close(self) -> None:
        self._stream.close()


def quoted(path: bytes) -> bytes:
    """A path as a command of ``git fast-import`` names it."""
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'


@contextlib.contextmanager
def opened(repository: Repository, *, stop: Stop | None = None) -> Iterator[Store]:
    """A store whose objects are the clone's own: what is written is written there.

    :func:`opened_apart` is for what may come to nothing.
    """
    with _directory(repository) as path:
        store = Store(path, _objects_of(repository), stop)
        _end_histories(repository, store)
        yield store


@contextlib.contextmanager
def opened_apart(
    repository: Repository, *, stop: Stop | None = None
) -> Iterator[Store]:
    """A store that reads the clone's objects, and keeps what is written to itself until it is removed."""
    with _directory(repository) as path:
        alternates = path / "objects" / "info" / "alternates"
        alternates.parent.mkdir()
        alternates.write_bytes(os.fsencode(_objects_of(repository)) + b"\n")
        store = Store(path, path / "objects", stop)
        _end_histories(repository, store)
        yield store


def sweep(repository: Repository) -> None:
    """Delete what interrupted ones have left; the caller has the repository's lock."""
    worktrees.delete_tree(paths.archiving_path(repository.directory))


def publish(repository: Repository, apart: Store) -> None:
    """Move what was written to a store that is apart into the clone."""
    target = _objects_of(repository) / "pack"
    target.mkdir(exist_ok=True)
    for index in sorted((apart.objects / "pack").glob("*.idx")):
        # By the index a pack is known, so that it comes last. Its name says what is in it.
        for file in (index.with_suffix(".pack"), index):
            os.rename(file, target / file.name)
    make_durable(target)


def make_durable(directory: Path) -> None:
    """See that the names in the directory are on the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def parents_in(listed: bytes) -> dict[str, list[str]]:
    """The parents of each commit of a listing that has a commit and its parents on a line."""
    lines = (line.split() for line in listed.decode().splitlines())
    return {commit: parents for commit, *parents in lines}


def remote_commits(repository: Repository) -> list[str]:
    """The commits that the remote's branches had at the last fetch."""
    listed = repository.run(
        ["for-each-ref", "--format=%(objectname)", "refs/remotes"]
    ).stdout.decode()
    return sorted(set(listed.split()))


def point(repository: Repository, ref: str, commit: str) -> None:
    """Have ``ref`` of the clone name the commit, whatever it named before."""
    repository.run(
        ["update-ref", "--no-deref", "--", ref, commit],
        config={**_DURABLE, "core.logAllRefUpdates": "false"},
    )


def drop(repository: Repository, ref: str) -> None:
    """Delete ``ref`` of the clone, where it is there."""
    with contextlib.suppress(GitFailed):  # one that is broken is no use to anybody
        repository.run(["update-ref", "--no-deref", "-d", ref])


@contextlib.contextmanager
def _directory(repository: Repository) -> Iterator[Path]:
    above = paths.archiving_path(repository.directory)
    above.mkdir(mode=0o700, exist_ok=True)
    top = Path(tempfile.mkdtemp(dir=above))
    try:
        path = top / "git"
        for name in ("refs", "objects", "info"):
            (path / name).mkdir(parents=True)
        (path / "HEAD").write_text("ref: refs/heads/none\n")
        (path / "config").write_text(_CONFIG)
        (path / "info" / "attributes").write_text(_ATTRIBUTES)
        yield path
    finally:
        worktrees.delete_tree(top)


def _end_histories(repository: Repository, store: Store) -> None:
    """Have histories end where the clone says so and no more is there, as after somebody's ``git fetch --depth``."""
    text = worktrees.read_regular(repository.path / "shallow", most=_SHALLOW_MOST)
    kinds = store.kinds(set((text or b"").decode(errors="replace").split()))
    commits = [name for name, kind in kinds.items() if kind == "commit"]
    if not commits:
        return
    listed = store.run(
        "log",
        "--no-walk",
        "--format=%H %P",
        "--stdin",
        stdin="".join(f"{name}\n" for name in commits).encode(),
        most=_LISTING_MOST,
    ).stdout
    parents = parents_in(listed)
    there = store.kinds({name for names in parents.values() for name in names})
    # What is there is not to be hidden: anybody can write into that file.
    ends = [name for name, above in parents.items() if set(above) - there.keys()]
    if ends:
        (store.path / "shallow").write_text("".join(f"{name}\n" for name in ends))


def _objects_of(repository: Repository) -> Path:
    """Where the clone's objects are, which must be in the clone."""
    objects = repository.path / "objects"
    if objects.is_symlink() or (objects / "pack").is_symlink():
        raise NotArchivable(
            f"{objects} or its directory of packs is a symbolic link; put the directory itself in its place"
        )
    return objects
