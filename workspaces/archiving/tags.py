"""Annotated tags that an archive holds on to, as their bytes: of all at once, since there may be thousands of them.

A ``git fetch --tags`` in a worktree names every tag of the remote in its registration.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path

from workspaces.archiving.store import Store

_MOST = 256 * 1024 * 1024


def read(store: Store, names: Collection[str]) -> dict[str, bytes]:
    """The bytes of these objects, which are there, by their names; raises :class:`~workspaces.exceptions.GitError`."""
    if not names:
        return {}
    asked = "".join(f"{name}\n" for name in names).encode()
    left = store.run("cat-file", "--batch", "--buffer", stdin=asked, most=_MOST).stdout
    found, start = {}, 0
    # Each is its name, its type and its size on a line, its bytes, and the end of that line.
    while start < len(left):
        end = left.index(b"\n", start)
        name, _, size = left[start:end].split(b" ")
        start = end + 1 + int(size)
        found[name.decode()] = left[end + 1 : start]
        start += 1
    return found


def write(store: Store, texts: Iterable[bytes]) -> None:
    """Store these bytes as tags; raises :class:`~workspaces.exceptions.GitError` where they are none."""
    with tempfile.TemporaryDirectory(dir=store.path.parent) as directory:
        files = []
        for n, text in enumerate(texts):
            files.append(Path(directory, str(n)))
            files[-1].write_bytes(text)
        if files:
            named = "".join(f"{file}\n" for file in files).encode()
            arguments = ("-t", "tag", "-w", "--no-filters", "--stdin-paths")
            store.run("hash-object", *arguments, stdin=named, most=_MOST)
