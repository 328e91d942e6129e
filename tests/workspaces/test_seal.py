from __future__ import annotations

import logging
from pathlib import Path

import pytest
from django.contrib.auth.models import AbstractBaseUser

from notify.models import AuditEntry
from tests.workspaces.conftest import Told
from tests.workspaces.factories import AdminFactory
from tests.workspaces.remote import git
from workspaces import seal
from workspaces.exceptions import ConfigTampered, WrongHost
from workspaces.models import Workspace, Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def admin(db: None) -> AbstractBaseUser:
    """Who is told."""
    user = AdminFactory.create()
    assert isinstance(user, AbstractBaseUser)
    return user


def check(workspace: Workspace, repository: Repository) -> None:
    workspace.refresh_from_db()
    seal.check(workspace, repository)


def configure(repository: Repository, **values: str) -> None:
    for key, value in values.items():
        git("config", key.replace("_", "."), value, cwd=repository.path)


def unset(repository: Repository, *keys: str) -> None:
    for key in keys:
        git("config", "--unset", key, cwd=repository.path)


def test_what_is_as_it_was_made_costs_no_query(
    workspace: Workspace,
    repository: Repository,
    worktree: Worktree,
    django_assert_num_queries,
):
    with django_assert_num_queries(0):
        seal.check(workspace, repository)


def test_what_is_planted_is_refused_recorded_and_told_once(
    workspace: Workspace,
    repository: Repository,
    told: Told,
    caplog: pytest.LogCaptureFixture,
):
    configure(repository, core_fsmonitor="/opt/evil", alias_st="status")
    for _ in range(3):
        with pytest.raises(ConfigTampered, match=r"demo: core\.fsmonitor in "):
            check(workspace, repository)
    workspace.refresh_from_db()
    assert workspace.tampered_since is not None
    assert [entry["key"] for entry in workspace.tampered_config] == ["core.fsmonitor"]
    (notification,) = told("workspace.config_tampered")
    assert "config: core.fsmonitor = /opt/evil" in notification.body
    assert "workspace approve demo" in notification.body
    events = [r for r in caplog.records if r.message == "workspace.config_tampered"]
    assert len(events) == 1


def test_it_is_told_again_when_there_is_more_and_not_when_there_is_less(
    workspace: Workspace, repository: Repository, told: Told
):
    configure(repository, core_fsmonitor="x")
    with pytest.raises(ConfigTampered):
        check(workspace, repository)
    workspace.refresh_from_db()
    since = workspace.tampered_since
    configure(repository, core_pager="y")
    with pytest.raises(ConfigTampered):
        check(workspace, repository)
    unset(repository, "core.fsmonitor")
    with pytest.raises(ConfigTampered, match=r"core\.pager in "):
        check(workspace, repository)
    assert len(told("workspace.config_tampered")) == 2
    workspace.refresh_from_db()
    assert workspace.tampered_since == since


def test_another_value_is_more(
    workspace: Workspace, repository: Repository, told: Told
):
    for value in ("x", "y"):
        configure(repository, core_fsmonitor=value)
        with pytest.raises(ConfigTampered):
            check(workspace, repository)
    assert len(told("workspace.config_tampered")) == 2


def test_when_it_is_gone_that_is_recorded_and_told(
    workspace: Workspace,
    repository: Repository,
    told: Told,
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.INFO)
    configure(repository, core_fsmonitor="x")
    with pytest.raises(ConfigTampered):
        check(workspace, repository)
    unset(repository, "core.fsmonitor")
    for _ in range(2):
        check(workspace, repository)
    workspace.refresh_from_db()
    assert (workspace.tampered_since, workspace.tampered_config) == (None, [])
    assert len(told("workspace.config_cleared")) == 1
    assert "workspace.config_cleared" in caplog.messages


def test_what_is_approved_is_accepted_and_audited(
    workspace: Workspace, repository: Repository, told: Told
):
    configure(repository, core_hooksPath=".husky")
    with pytest.raises(ConfigTampered):
        check(workspace, repository)
    (approved,) = seal.approve(workspace, actor="ada")
    assert approved.key == "core.hookspath"
    check(workspace, repository)
    assert len(told("workspace.config_cleared")) == 1
    entry = AuditEntry.objects.get(action="workspace.approve")
    assert (entry.actor, entry.target) == ("ada", "workspace:demo")
    assert entry.data["key"] == "core.hookspath"
    assert seal.approve(workspace, actor="ada") == []
    assert AuditEntry.objects.filter(action="workspace.approve").count() == 1


def test_only_the_very_value_is_approved(workspace: Workspace, repository: Repository):
    configure(repository, core_hooksPath=".husky")
    seal.approve(workspace, actor="ada")
    # As it is shown, they are the same.
    configure(repository, core_hooksPath="x" * 300 + "1")
    with pytest.raises(ConfigTampered):
        check(workspace, repository)
    seal.approve(workspace, actor="ada")
    configure(repository, core_hooksPath="x" * 300 + "2")
    with pytest.raises(ConfigTampered):
        check(workspace, repository)


def test_what_was_approved_and_removed_has_to_be_approved_again(
    workspace: Workspace, repository: Repository
):
    configure(repository, core_hooksPath=".husky")
    seal.approve(workspace, actor="ada")
    unset(repository, "core.hooksPath")
    assert seal.approve(workspace, actor="ada") == []
    configure(repository, core_hooksPath=".husky")
    with pytest.raises(ConfigTampered):
        check(workspace, repository)


def test_an_approval_is_of_one_file(
    workspace: Workspace, repository: Repository, worktree: Worktree
):
    path = Path(worktree.path)
    configure(repository, core_pager="less", extensions_worktreeConfig="true")
    seal.approve(workspace, actor="ada")
    git("config", "--worktree", "core.pager", "less", cwd=path)
    with pytest.raises(ConfigTampered, match=r"core\.pager"):
        check(workspace, repository)


def test_files_that_lead_out_of_the_clone_cannot_be_approved(
    workspace: Workspace, repository: Repository, told: Told
):
    (repository.path / "objects/info/alternates").write_text("/elsewhere\n")
    with pytest.raises(ConfigTampered, match="objects/info/alternates"):
        check(workspace, repository)
    with pytest.raises(ConfigTampered, match="cannot be approved"):
        seal.approve(workspace, actor="ada")
    assert len(told("workspace.config_tampered")) == 1
    (repository.path / "objects/info/alternates").unlink()
    check(workspace, repository)
    assert len(told("workspace.config_cleared")) == 1


def test_a_secret_reaches_neither_row_nor_notification_nor_audit(
    workspace: Workspace, repository: Repository, told: Told
):
    configure(repository, http_extraHeader="Authorization: Basic SECRET")
    with pytest.raises(ConfigTampered) as refused:
        check(workspace, repository)
    seal.approve(workspace, actor="ada")
    workspace.refresh_from_db()
    (notification,) = told("workspace.config_tampered")
    entry = AuditEntry.objects.get(action="workspace.approve")
    for where in (
        refused.value,
        workspace.approved_config,
        notification.body,
        notification.data,
        entry.data,
    ):
        assert "SECRET" not in str(where)


def test_another_hosts_clone_cannot_be_approved_here(workspace: Workspace):
    workspace.host = "elsewhere"
    with pytest.raises(WrongHost):
        seal.approve(workspace, actor="ada")
