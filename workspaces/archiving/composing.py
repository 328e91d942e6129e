"""The commit that an archive is: its layout, how it is written, and how its parts are read again.

::

    tree/<path>       files and links as they were, their bytes raw
    odd/<n>           those that no git tree can hold by their path, by their place in the manifest
    admin/<path>      the registration, in the same way; its odd ones are in admin-odd/<n>
    objects/<name>    trees and blobs that only the index or an operation in progress has
    tags/<name>       annotated tags, as the bytes of a tag object
    manifest.json     every path of the files, also directories and pipes, with its mode and digest
    admin.json        the same for the registration
    facts.json        what else is known of the worktree

Its parents lead to every commit that the worktree had.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workspaces.archiving import manifest
from workspaces.archiving.manifest import Entry, Kind, Manifest
from workspaces.archiving.reading import Top
from workspaces.archiving.roots import Roots
from workspaces.archiving.store import Import, Store, quoted
from workspaces.exceptions import ArchiveDamaged
from workspaces.models import WorktreeArchive
from workspaces.repository import Stop

FILES, ADMIN = "tree", "admin"
MANIFEST, ADMIN_MANIFEST, FACTS = "manifest.json", "admin.json", "facts.json"
_ODD = {FILES: "odd", ADMIN: "admin-odd"}
_MODES = {Kind.FILE: b"100644", Kind.LINK: b"120000"}
_JSON_MOST = 256 * 1024 * 1024
_WHO = b"ACW <acw@localhost>"


@dataclass(frozen=True, slots=True)
class Parts:
    """What an archive's commit says of itself; ``facts`` as :func:`write` was given them."""

    files: Manifest
    admin: Manifest
    facts: dict[str, Any]


def places(listed: Manifest, part: str) -> Iterator[tuple[Entry, bytes]]:
    """Each entry that has bytes, with its path in the commit."""
    for n, entry in enumerate(listed.entries):
        if entry.has_bytes:
            if is_odd(entry):
                yield entry, f"{_ODD[part]}/{n}".encode()
            else:
                yield entry, part.encode() + b"/" + entry.path


def is_odd(entry: Entry) -> bool:
    """Whether git refuses the path in an index: that of something within another repository, and a link ``.gitmodules``."""
    names = entry.path.lower().split(b"/")
    return b".git" in names or (entry.kind is Kind.LINK and names[-1] == b".gitmodules")


def write_blobs(
    stream: Import, top: Top, listed: Manifest, missing: set[str], *, stop: Stop | None
) -> None:
    """Store the bytes of those entries whose blobs are ``missing``, which is emptied of them."""
    for entry in listed.entries:
        if entry.blob in missing:
            missing.discard(entry.blob)
            if entry.kind is Kind.LINK:
                stream.blob([top.link(entry.path)], entry.size)
            else:
                stream.blob(top.chunks(entry.path, stop=stop), entry.size)


def write(
    stream: Import,
    archive: WorktreeArchive,
    parts: Parts,
    roots: Roots,
    tags: dict[str, bytes],
) -> None:
    """Make the commit, of blobs that are there or were written before, under the archive's ref of the store.

    ``tags`` are the bytes of annotated tags by their names. Has nothing of the clock but the archive's.
    """
    texts = {
        MANIFEST: parts.files.as_json(),
        ADMIN_MANIFEST: parts.admin.as_json(),
        FACTS: json.dumps(parts.facts, sort_keys=True, default=str).encode(),
    }
    texts |= {f"tags/{name}": text for name, text in tags.items()}
    lines = [
        b"commit %s\n" % archive.ref.encode(),
        b"committer %s %d +0000\n" % (_WHO, int(archive.created_at.timestamp())),
        _data(f"{archive}\n".encode(errors="replace")),
        *(
            b"%s %s\n" % (b"merge" if n else b"from", parent.encode())
            for n, parent in enumerate(roots.parents)
        ),
        # What it begins from is its first parent's files.
        b"deleteall\n",
        *_entries(parts.files, FILES),
        *_entries(parts.admin, ADMIN),
        *(
            _entry(b"040000" if kind == "tree" else b"100644", name, f"objects/{name}")
            for name, kind in roots.objects.items()
        ),
        *(
            b"M 100644 inline %s\n" % quoted(path.encode()) + _data(text)
            for path, text in texts.items()
        ),
    ]
    for line in lines:
        stream.write(line)


def read(store: Store, commit: str, *, digest: str) -> Parts:
    """What the commit says; raises :class:`~workspaces.exceptions.ArchiveDamaged` where its manifest is not the one with ``digest``."""
    files = manifest.from_json(store.blob(f"{commit}:{MANIFEST}", most=_JSON_MOST))
    if files.digest != digest:
        raise ArchiveDamaged(
            f"the manifest in {commit} is not the one that was recorded ({digest})"
        )
    return Parts(
        files=files,
        admin=manifest.from_json(
            store.blob(f"{commit}:{ADMIN_MANIFEST}", most=_JSON_MOST)
        ),
        facts=json.loads(store.blob(f"{commit}:{FACTS}", most=_JSON_MOST)),
    )


def blobs_of(store: Store, commit: str) -> dict[bytes, str]:
    """Every path of the commit with the name of its blob."""
    listed = store.run(
        "ls-tree", "-r", "-z", "--full-tree", commit, most=_JSON_MOST
    ).stdout
    found = {}
    for line in listed.split(b"\0"):
        if line:
            about, _, path = line.partition(b"\t")
            found[path] = about.split(b" ")[2].decode()
    return found


def _entries(listed: Manifest, part: str) -> Iterator[bytes]:
    for entry, path in places(listed, part):
        # An odd link is kept as the text that it is.
        mode = b"100644" if is_odd(entry) else _MODES[entry.kind]
        if entry.kind is Kind.FILE and entry.mode & 0o100 and mode == b"100644":
            mode = b"100755"
        yield b"M %s %s %s\n" % (mode, entry.blob.encode(), quoted(path))


def _entry(mode: bytes, name: str, path: str) -> bytes:
    return b"M %s %s %s\n" % (mode, name.encode(), quoted(path.encode()))


def _data(text: bytes) -> bytes:
    return b"data %d\n" % len(text) + text + b"\n"
