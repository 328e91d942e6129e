"""What is staged in a registration that is put aside, and in no commit yet: kept as a commit of its own."""

from __future__ import annotations

import contextlib
from pathlib import Path

from workspaces import git
from workspaces.exceptions import GitFailed
from workspaces.repository import Repository, Stop

_GITLINK = "160000"
_LISTING_MOST = 256 * 1024 * 1024
_WHO = {"user.name": "ACW", "user.email": "acw@localhost"}


def keep(
    repository: Repository, admin: Path, *, prefix: str, stop: Stop | None = None
) -> list[str]:
    """Give it a commit on a branch ``<prefix>-staged-…``, and return the branch; [] where there is nothing.

    Of an index with conflicts, the commit has every version of every file, by the names that git has for their bytes.

    The caller has the repository's lock, and has seen to the seal.
    """

    def ask(*arguments: str, lenient: bool = False, stdin: bytes | None = None) -> str:
        accept = (0, 1, 128) if lenient else (0,)
        result = git.run(
            arguments,
            git_dir=admin,
            config=_WHO,
            stdin=stdin,
            stop=stop,
            accept=accept,
            most=_LISTING_MOST,
        )
        return result.stdout.decode(errors="surrogateescape").strip()

    with contextlib.suppress(GitFailed):  # no index, or one that cannot be read
        tree = ask("write-tree", lenient=True)
        if not tree:
            # It has conflicts: what it names, by its name.
            listed = ask("ls-files", "--stage", "-z").split("\0")
            modes = {line.split(" ")[1]: line[:6] for line in listed if line}
            blobs = sorted(name for name, mode in modes.items() if mode != _GITLINK)
            lines = "".join(f"100644 blob {name}\t{name}\0" for name in blobs)
            tree = ask("mktree", "-z", stdin=lines.encode())
        head = ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}", lenient=True)
        if head and ask("rev-parse", f"{head}^{{tree}}") == tree:
            return []
        parent = ["-p", head] if head else []
        commit = ask("commit-tree", *parent, "-m", "What was staged", tree)
        branch = f"{prefix}-staged-{commit[:12]}"
        repository.run(["update-ref", f"refs/heads/{branch}", commit, ""])
        return [branch]
    return []
