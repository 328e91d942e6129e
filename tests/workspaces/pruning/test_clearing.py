from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces.remote import git
from workspaces.exceptions import (
    ConfigTampered,
    NotArchivable,
    OutsideDataDirectory,
)
from workspaces.models import Workspace, Worktree, WorktreeArchive
from workspaces.pruning import trash
from workspaces.pruning.clearing import Clearing
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def clearing(repository: Repository, worktree: Worktree, path: Path) -> Clearing:
    return Clearing(
        repository=repository,
        worktree=worktree,
        path=path,
        reason=WorktreeArchive.Reason.PRUNED,
        actor="ada",
    )


def test_nothing_is_deleted_before_it_is_archived_and_verified(
    clearing: Clearing, path: Path
):
    assert clearing.already_archived() is None
    cleared = clearing.archive()
    archive = cleared.archive
    assert archive is not None
    assert (archive.state, archive.actor) == ("verified", "ada")
    place = trash.archived(clearing.repository, clearing.worktree.pk, archive.pk)
    assert (place / "README").exists()
    again = clearing.already_archived()
    assert again is not None
    assert again.archive == archive
    clearing.put_back()  # it is too late for that
    assert not path.exists()
    clearing.delete(cleared)
    clearing.delete(cleared)
    assert not place.exists()


def test_a_configuration_that_was_tampered_with_keeps_it(
    clearing: Clearing, path: Path
):
    config = clearing.repository.path / "config"
    config.write_text(config.read_text() + '[filter "x"]\n\tclean = /bin/evil\n')
    with pytest.raises(ConfigTampered):
        clearing.archive()
    clearing.put_back()
    assert (path / "README").exists()
    assert Workspace.objects.get().tampered_since is not None
    assert not WorktreeArchive.objects.exists()


def test_one_whose_git_file_names_another_repository_stays_where_it_is(
    clearing: Clearing, path: Path
):
    (path / ".git").unlink()
    git("init", "--quiet", f"--separate-git-dir={path}/.own", cwd=path)
    before = (path / ".git").read_text()
    with pytest.raises(NotArchivable, match="names another repository"):
        clearing.archive()
    assert (path / ".git").read_text() == before
    assert not WorktreeArchive.objects.exists()


def test_one_that_became_a_repository_of_its_own_stays_where_it_is(
    clearing: Clearing, path: Path
):
    (path / ".git").unlink()
    (path / ".git").mkdir()
    with pytest.raises(OutsideDataDirectory, match="repository of its own"):
        clearing.archive()
    assert path.exists()
