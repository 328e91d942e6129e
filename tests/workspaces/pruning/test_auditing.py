from __future__ import annotations

import datetime as dt
import io
import json
import subprocess
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models.functions import Now
from pytest_django import Settings

from tests.workspaces.factories import WorkspaceFactory
from tests.workspaces.remote import commit, git
from workspaces import ledger
from workspaces.archiving import bundles
from workspaces.models import LedgerEntry, Workspace, Worktree, WorktreeArchive
from workspaces.prune import archive_worktree
from workspaces.pruning.auditing import Finding, audit
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def archive(worktree: Worktree) -> WorktreeArchive:
    """That of a worktree with a commit and a file of its own."""
    commit(Path(worktree.path))
    Path(worktree.path, "draft").write_text("mine\n")
    taken = archive_worktree(worktree.pk, actor="ada")
    assert taken is not None
    return taken


def found() -> Finding:
    (one,) = audit()
    return one.finding


def test_what_is_there_is_whole_and_is_read_again(archive: WorktreeArchive):
    assert found() is Finding.WHOLE
    assert [one.finding for one in audit(archive.worktree_id)] == ["whole"]
    assert list(audit(archive.worktree_id + 1)) == []


def make_loose(repository: Repository) -> None:
    """Have each object of the clone be a file of its own."""
    packs = repository.path / "objects" / "pack"
    for pack in packs.glob("*.pack"):
        aside = repository.directory / pack.name
        pack.rename(aside)
        for left in packs.glob(f"{pack.stem}.*"):
            left.unlink()
        with aside.open("rb") as stdin:
            command = ["git", "unpack-objects", "-q"]
            subprocess.run(command, cwd=repository.path, stdin=stdin, check=True)


@pytest.mark.parametrize(
    "damage", ["reference", "object", "commit", "digest", "path", "archive", "state"]
)
def test_whatever_does_not_hold_is_found(
    archive: WorktreeArchive, repository: Repository, damage: str
):
    archives = WorktreeArchive.objects.all()
    if damage == "reference":
        git("update-ref", "-d", archive.ref, cwd=repository.path)
    elif damage == "object":
        blob = git("rev-parse", f"{archive.commit_sha}:tree/draft", cwd=repository.path)
        make_loose(repository)
        (repository.path / "objects" / blob[:2] / blob[2:]).unlink()
    elif damage == "commit":
        archives.update(commit_sha="0" * 40)
    elif damage == "digest":
        archives.update(manifest_digest="0" * 64)
    elif damage == "path":
        archives.update(path=f"{archive.path}x")
    elif damage == "archive":
        archives.delete()
    else:
        archives.update(state="writing")
    assert found() is Finding.WRONG


def test_a_bundle_needs_what_it_builds_on(
    worktree: Worktree, repository: Repository, settings: Settings
):
    settings.ACW_ARCHIVE_BUNDLE_OVER = 0
    commit(Path(worktree.path))
    archive = archive_worktree(worktree.pk, actor="ada")
    assert archive is not None
    ref = bundles.base_ref(archive)
    assert found() is Finding.WHOLE
    for damage in (["-d", ref], [ref, "refs/remotes/origin/main^{commit}"]):
        git("update-ref", *damage, cwd=repository.path)
        assert found() is Finding.WRONG
        assert bundles.hold_base(repository, archive)
        assert found() is Finding.WHOLE


def test_one_that_expired_is_so_only_where_the_ledger_says_it_too(
    archive: WorktreeArchive,
):
    WorktreeArchive.objects.update(state="expired")
    assert found() is Finding.WRONG
    ledger.record(LedgerEntry.Action.EXPIRED, actor="system", archive=archive)
    assert found() is Finding.EXPIRED


def test_one_of_another_host_is_looked_at_there(
    archive: WorktreeArchive, settings: Settings
):
    settings.ACW_HOST = "elsewhere"
    assert found() is Finding.ELSEWHERE


def test_one_whose_workspace_was_removed_went_with_it(archive: WorktreeArchive):
    workspace = archive.workspace
    Workspace.objects.all().delete()
    assert found() is Finding.GONE
    WorkspaceFactory(
        name=workspace.name, created_at=Now() + dt.timedelta(microseconds=1)
    )
    assert found() is Finding.GONE


def test_one_of_which_nothing_was_left_has_no_archive(worktree: Worktree):
    ledger.record(LedgerEntry.Action.PRUNED, actor="system", worktree=worktree)
    assert found() is Finding.NOTHING


def test_the_command_prints_what_holds_and_fails_where_something_does_not(
    archive: WorktreeArchive, capsys: pytest.CaptureFixture[str]
):
    stdout = io.StringIO()
    call_command("worktree", "audit", stdout=stdout)
    assert "whole" in stdout.getvalue()
    WorktreeArchive.objects.update(manifest_digest="0" * 64)
    with pytest.raises(CommandError, match="1 of 1 are not as the ledger says"):
        call_command("worktree", "audit", stdout=io.StringIO())
    stdout = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("worktree", "audit", "--json", stdout=stdout)
    assert ended.value.code == 1
    (row,) = json.loads(stdout.getvalue())
    assert row["found"] == "wrong"
    assert row["worktree_id"] == archive.worktree_id
