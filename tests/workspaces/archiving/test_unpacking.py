from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.workspaces.archiving import zoo
from tests.workspaces.depths import dug
from workspaces.archiving import bundles, composing, restoring, unpacking
from workspaces.models import Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def test_links_within_lead_nothing_astray_and_modes_are_as_they_were(
    repository: Repository, worktree: Worktree, tmp_path: Path
):
    path = Path(worktree.path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (path / "link").symlink_to(outside)
    nested = path / "nested" / ".git"
    nested.mkdir(parents=True)
    (nested / "link").symlink_to(outside)
    (nested / "HEAD").write_text("x")
    (nested / "HEAD").chmod(0o600)
    nested.chmod(0o500)
    archive = zoo.archive(repository, worktree)
    with bundles.opened(repository, archive) as ours:
        parts = composing.read(ours, archive.commit_sha, digest=archive.manifest_digest)
        unpacking.unpack(
            ours,
            archive.commit_sha,
            parts.files,
            composing.FILES,
            target=tmp_path / "made",
        )
    assert zoo.listed(tmp_path / "made").digest == archive.manifest_digest
    made = tmp_path / "made" / "nested" / ".git"
    assert made.joinpath("link").readlink() == outside
    assert stat.S_IMODE(made.stat().st_mode) == 0o500
    assert list(outside.iterdir()) == []


def test_what_git_refuses_to_check_out_and_what_lies_too_deep_for_a_path_comes_back(
    repository: Repository, worktree: Worktree
):
    path = Path(worktree.path)
    (path / ".gitmodules").symlink_to("elsewhere")
    (path / "below").mkdir()
    (path / "below" / ".GitModules").symlink_to("elsewhere")
    # The longest that a whole path can name here is longer than where it is made again can.
    with dug(path, 20) as deepest:
        os.mkfifo("pipe", 0o640, dir_fd=deepest)
        os.close(os.open("file", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=deepest))
    before = zoo.listed(path)
    zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)
    restoring.restore(worktree.pk, actor="somebody")
    assert zoo.listed(path).entries == before.entries
