"""The numbers of archives: none is given twice, not even where the database has forgotten one.

A database that was brought back from a backup gives numbers that archives on the disk have already. What has such a name would be
written over, and with it the only copy of somebody's work.
"""

from __future__ import annotations

import contextlib
import os

from django.db import transaction

from workspaces import paths
from workspaces.models import WorktreeArchive
from workspaces.pruning import trash
from workspaces.repository import Repository


def create(repository: Repository, archive: WorktreeArchive) -> WorktreeArchive:
    """Save the new row under a number that nothing on the disk has, and return it; the caller has the repository's lock."""
    taken = _on_disk(repository, archive.workspace.name)
    while True:
        with transaction.atomic():
            archive.save(force_insert=True)
            if archive.pk not in taken:
                break
            # No row is there for a moment: who clears up after an interruption would delete what has the number.
            archive.delete()
    archive.refresh_from_db()
    return archive


def _on_disk(repository: Repository, name: str) -> set[int]:
    """Those of references, bundles, and what is being deleted since it is in an archive."""
    listed = repository.run(["for-each-ref", "--format=%(refname)", "refs/acw"]).stdout
    names = [ref.rpartition("/")[2] for ref in listed.decode(errors="replace").split()]
    with contextlib.suppress(FileNotFoundError):
        files = os.listdir(paths.bundle_path(name, 0).parent)
        names += [file.partition(".")[0] for file in files]
    found = {int(name) for name in names if name.isascii() and name.isdecimal()}
    return found | trash.archive_ids(repository)
