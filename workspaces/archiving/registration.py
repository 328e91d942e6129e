"""What the clone keeps for one worktree (its HEAD, index, logs, operations in progress), as an archive has it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from workspaces import worktrees
from workspaces.archiving import manifest, roots
from workspaces.archiving.manifest import Kind, Manifest
from workspaces.archiving.reading import Top, shown
from workspaces.archiving.store import Store
from workspaces.exceptions import ArchiveTooLarge, NotArchivable
from workspaces.holding import nested
from workspaces.plumbing import clone_files, presentable
from workspaces.repository import Repository, Stop

INDEX = b"index"
# Written anew by whoever makes the registration again.
_OURS = frozenset({b"gitdir", b"commondir", b"locked"})
_SUBMODULES = b"modules/"
_INDEX_MOST = 1024 * 1024 * 1024
_TEXT_MOST = 64 * 1024 * 1024
_HEAD_MOST = 4096
_OBJECT = re.compile(rb"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")
_NOWHERE = "0" * 40
_HEADS = b"refs/heads/"
# As file systems have it: each part of a branch's name is that of a file.
_NAME_LONGEST = 255

COMES_BACK_TO = (
    b"rebase-merge/head-name",
    b"rebase-apply/head-name",
    b"BISECT_START",
)
"""Where git notes the branch that a worktree will be on again after what it is doing."""


@dataclass(frozen=True, slots=True)
class Head:
    """Where HEAD is: on ``branch`` (a full name, ``refs/heads/…``), or, without one, at ``commit``.

    ``commit`` is "" where the branch has none yet.
    """

    branch: str
    commit: str


def find(repository: Repository, path: Path) -> Path | None:
    """The registration of the worktree of ``path``, which must be a directory of the clone itself."""
    listed = repository.path / "worktrees"
    if listed.is_symlink():
        raise NotArchivable(
            f"{listed} is a symbolic link; put the directory itself in its place"
        )
    return worktrees.registration(repository, path)


def read(top: Top, *, stop: Stop | None = None) -> Manifest:
    """All that is in it, without locks that who died left behind."""
    return manifest.of(top, but=_is_left_out, stop=stop)


def head(repository: Repository, top: Top, listed: Manifest) -> Head:
    """Where its HEAD is; raises :class:`~workspaces.exceptions.NotArchivable` where it has none that can be understood."""
    kinds = {entry.path: entry.kind for entry in listed.entries}
    text = b""
    if kinds.get(b"HEAD") is Kind.LINK:
        text = b"ref: " + top.link(b"HEAD")
    elif kinds.get(b"HEAD") is Kind.FILE:
        text = (top.read(b"HEAD", most=_HEAD_MOST) or b"").strip()
    if _OBJECT.fullmatch(text):
        return Head("", text.decode())
    name = text.removeprefix(b"ref:").strip().decode(errors="surrogateescape")
    if text.startswith(b"ref:") and _is_reference(name):
        return Head(name, _commit_of(repository, name))
    raise NotArchivable(
        "its HEAD names neither a branch nor a commit; check out what it was on"
    )


def _is_reference(name: str) -> bool:
    """Whether git could have a reference of the name, which may be anything that an agent wrote."""
    raw = os.fsencode(name)
    return (
        raw.startswith(b"refs/")
        and clone_files.is_name(raw)
        and max(map(len, raw.split(b"/"))) <= _NAME_LONGEST
    )


def _commit_of(repository: Repository, branch: str) -> str:
    """Where the branch is; "" where there is none yet."""
    commit = repository.commit_of(branch)
    if commit is not None:
        return commit
    named = ["rev-parse", "--verify", "--quiet", branch]
    said = repository.run(named, accept=(0, 1, 128)).stdout.decode().strip()
    if said or (repository.path / branch).is_file():
        raise NotArchivable(
            f"its branch {presentable.value(branch.removeprefix('refs/heads/'))} names {said or 'nothing'}, which git cannot read as a"
            " commit; put the branch, or what it names, right"
        )
    return ""


def comes_back_to(repository: Repository, top: Top, listed: Manifest) -> Head:
    """The branch that HEAD is put on again when a rebase or bisection is over; without one where none is in progress."""
    files = {entry.path for entry in listed.entries if entry.kind is Kind.FILE}
    for note in COMES_BACK_TO:
        text = top.read(note, most=_HEAD_MOST) or b"" if note in files else b""
        # A rebase notes the whole name, a bisection the short one; or what was no branch.
        short = text.strip().removeprefix(_HEADS)
        name = (_HEADS + short).decode(errors="surrogateescape")
        commit = repository.commit_of(name) if _is_reference(name) else None
        if commit is not None:
            return Head(name, commit)
    return Head("", "")


def named_objects(top: Top, listed: Manifest) -> set[str]:
    """The names of objects in its files: where HEAD has been, what is being merged, picked, bisected and stashed."""
    names: set[str] = set()
    for entry in listed.entries:
        # Submodules have their repositories in it, with objects of their own.
        if (
            entry.kind is not Kind.FILE
            or entry.path == INDEX
            or entry.path.startswith(_SUBMODULES)
        ):
            continue
        names.update(objects_in(_read(top, entry.path)))
    return names


def _read(top: Top, path: bytes) -> bytes:
    """A file that names objects, b"" where there is none; one that is too large to look through is no reason to lose what it names."""
    try:
        with top.file(path) as opened:
            size = os.fstat(opened.fileno()).st_size
    except NotArchivable as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return b""
        raise
    if size > _TEXT_MOST:
        raise ArchiveTooLarge(
            f"{shown(path)} of its registration has {size} bytes, and at most {_TEXT_MOST} are looked through for commits; shorten it,"
            " a log with `git reflog expire`"
        )
    return top.read(path, most=_TEXT_MOST) or b""


def objects_within(repository: Repository, path: Path, ours: Store) -> set[str]:
    """The names of objects that only worktrees within the one of ``path`` lead to; uses the index of ``ours`` for it.

    Raises :class:`~workspaces.exceptions.NotArchivable` for what cannot be read of them.
    """
    names: set[str] = set()
    for found in nested.within(repository, path):
        try:
            with Top(found.admin) as top:
                listed = read(top, stop=ours.stop)
                place = head(repository, top, listed)
                names |= named_objects(top, listed) | ({place.commit} - {""})
                if copy_index(top, listed, ours.path):
                    names |= roots.only_in_index(ours, place.commit)
        except NotArchivable as error:
            said = presentable.value(str(found.path.relative_to(path)))
            raise NotArchivable(f"the worktree {said} within it: {error}") from error
        finally:
            (ours.path / os.fsdecode(INDEX)).unlink(missing_ok=True)
    return names


def objects_in(text: bytes) -> list[str]:
    """The full names of objects in a text of git's, in its order, as often as they stand there."""
    names = (name.decode() for name in _OBJECT.findall(text))
    return [name for name in names if name != _NOWHERE]


def led_to(repository: Repository, head: Head) -> set[str]:
    """Where it is, with its branch where that has been, and the stashes that were made there."""
    names = stashes(repository, head.branch) | ({head.commit} - {""})
    return names | branch_log(repository, head.branch) if head.branch else names


def branch_log(repository: Repository, branch: str) -> set[str]:
    """Where a branch has been, as its log in the clone says."""
    with Top(repository.path) as top:
        path = f"logs/{branch}".encode(errors="surrogateescape")
        return set(objects_in(_read(top, path)))


def stashes(repository: Repository, branch: str) -> set[str]:
    """The stashes that were made on the branch; ``""``: on none."""
    short = branch.removeprefix("refs/heads/").encode(errors="surrogateescape")
    name = short or b"(no branch)"
    with Top(repository.path) as top:
        log = _read(top, b"logs/refs/stash")
    made = (b"WIP on " + name + b":", b"On " + name + b":")
    return {
        fields[0].split(b" ")[1].decode(errors="replace")
        for line in log.splitlines()
        if (fields := line.split(b"\t", 1))[1:] and fields[1].startswith(made)
    }


def copy_index(top: Top, listed: Manifest, directory: Path) -> bool:
    """Copy the index, whole or split, to where a git directory of our own has it; False where there is none."""
    found = False
    for entry in listed.entries:
        if entry.path != INDEX and not entry.path.startswith(b"sharedindex."):
            continue
        text = (
            top.read(entry.path, most=_INDEX_MOST)
            if entry.kind is Kind.FILE and b"/" not in entry.path
            else None
        )
        if text is None:
            raise NotArchivable(
                "its index is no file, or larger than 1 GiB; remove what is in its place"
            )
        (directory / entry.path.decode()).write_bytes(text)
        found = found or entry.path == INDEX
    return found


def _is_left_out(path: bytes) -> bool:
    # What a submodule has is its own, and it may have such a name itself.
    is_lock = path.endswith(b".lock") and not path.startswith(_SUBMODULES)
    return path in _OURS or is_lock
