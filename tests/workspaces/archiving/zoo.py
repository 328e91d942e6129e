"""Worktrees with everything that is hard to keep, and what is asked of them before and after."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.workspaces.remote import WHO, commit, git
from workspaces import worktrees
from workspaces.archiving import snapshot, verifying
from workspaces.archiving.manifest import Manifest
from workspaces.archiving.reading import Top
from workspaces.archiving.snapshot import read_files
from workspaces.models import Worktree, WorktreeArchive
from workspaces.repository import Repository

CACHE = "node_modules"


def fill(path: Path) -> None:
    """Committed, staged, changed, untracked, ignored; modes, links, names, pipes; repositories within."""
    (path / ".gitignore").write_text(f"{CACHE}/\n.env\n*.log\n/scratch/\n")
    commit(path, "amended.txt", "first\n")
    (path / "amended.txt").write_text("second\n")
    git("commit", "--quiet", "--amend", "--all", "--message", "amended", cwd=path)
    commit(path, "run.sh", "#!/bin/sh\n")
    (path / "run.sh").chmod(0o755)
    git("add", "--all", cwd=path)
    git("commit", "--quiet", "--message", "all", cwd=path)
    # Changed, staged and changed again, staged only, intended only, hidden.
    (path / "amended.txt").write_text("third\n")
    (path / "README").write_text("staged\n")
    git("add", "README", cwd=path)
    (path / "README").write_text("changed again\n")
    (path / "only-staged").write_text("gone from the disk\n")
    git("add", "only-staged", cwd=path)
    (path / "only-staged").unlink()
    (path / "intended").write_text("not yet\n")
    git("add", "--intent-to-add", "intended", cwd=path)
    git("update-index", "--assume-unchanged", "run.sh", cwd=path)
    (path / "run.sh").write_text("#!/bin/sh\necho hidden\n")
    # Ignored; a cache.
    (path / ".env").write_text("SECRET=1\n")
    (path / ".env").chmod(0o600)
    (path / "scratch" / "deep").mkdir(parents=True)
    (path / "scratch" / "deep" / "data.log").write_bytes(b"\0\xff" * 1000)
    (path / CACHE / "left-pad").mkdir(parents=True)
    (path / CACHE / "left-pad" / "index.js").write_text("made again\n")
    # Names, links, modes, pipes, what has no content.
    odd = os.fsencode(path)
    for name in (
        b"new\nline",
        b"not-utf8-\xff\xfe",
        b'quote"back\\slash',
        b"-dash",
        b"GIT~1",
    ):
        with open(odd + b"/" + name, "wb") as file:
            file.write(name)
    (path / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    (path / ".gitattributes").write_text("*.txt text eol=crlf\n*.bin filter=lfs\n")
    (path / "large.bin").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"
    )
    (path / "nowhere").symlink_to("/does/not/exist")
    (path / "inside").symlink_to("scratch/deep")
    (path / "outside").symlink_to("/etc")
    (path / "empty" / "directories").mkdir(parents=True)
    os.mkfifo(path / "pipe", 0o640)
    (path / "read-only").mkdir()
    (path / "read-only" / "file").write_text("kept\n")
    (path / "read-only" / "file").chmod(0o444)
    (path / "read-only").chmod(0o555)
    _nested(path / "vendor" / "nested")
    (path / "bare-beginning").mkdir()
    git("init", "--quiet", cwd=path / "bare-beginning")


def _nested(nested: Path) -> None:
    nested.mkdir(parents=True)
    git("init", "--quiet", "--initial-branch=main", cwd=nested)
    commit(nested, "inner")
    (nested / "uncommitted").write_text("also here\n")
    (nested / ".git" / "index.lock").touch()


def status(path: Path) -> bytes:
    """What git says of it, without the caches, which are not archived."""
    done = subprocess.run(
        [
            "git",
            *WHO,
            "status",
            "--porcelain=v2",
            "-z",
            "--ignored",
            "--untracked-files=all",
        ],
        cwd=path,
        capture_output=True,
        check=True,
    )
    lines = done.stdout.split(b"\0")
    return b"\0".join(
        line for line in lines if not line.startswith(f"! {CACHE}".encode())
    )


def listed(path: Path) -> Manifest:
    with Top(path) as top:
        return read_files(top, leave_out=frozenset({CACHE.encode()}), stop=None)


def archive(repository: Repository, worktree: Worktree) -> WorktreeArchive:
    """A verified archive of a worktree that is in its place."""
    taken = snapshot.take(
        repository, worktree, reason=WorktreeArchive.Reason.ASKED, actor="somebody"
    )
    verifying.verify(repository, taken)
    return taken


def remove(repository: Repository, worktree: Worktree) -> None:
    """As a prune does, and more: nothing that git could have kept is left but what the archive holds."""
    path = Path(worktree.path)
    admin = worktrees.registration(repository, path)
    worktrees.delete_tree(path)
    if admin is not None:
        subprocess.run(["rm", "-rf", str(admin)], check=True)
    Worktree.objects.filter(pk=worktree.pk).delete()


def clean_out(repository: Repository) -> None:
    """The most thorough forgetting that git has."""
    where = repository.path
    for branch in git(
        "for-each-ref", "--format=%(refname)", "refs/heads", cwd=where
    ).split():
        git("update-ref", "-d", branch, cwd=where)
    git("reflog", "expire", "--expire=now", "--all", cwd=where)
    git("gc", "--quiet", "--prune=now", cwd=where)
