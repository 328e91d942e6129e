from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from tests.workspaces.storages import MEMORY
from tests.workspaces.witness import plant
from workspaces import checks
from workspaces.checks import check_git
from workspaces.storing.storage import ALIAS


def test_a_git_that_will_do_is_no_finding():
    assert check_git() == []


def test_no_git_is_E001(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):  # noqa: N802 (the check's id)
    monkeypatch.setenv("PATH", str(tmp_path))
    (found,) = check_git()
    assert found.id == "workspaces.E001"
    assert "Install git 2.31 or newer" in str(found.hint)


def test_an_old_git_is_E002(programs: Path):  # noqa: N802 (the check's id)
    plant(programs / "git", "echo git version 2.30.9")
    (found,) = check_git()
    assert (found.id, found.msg) == ("workspaces.E002", "git 2.30 is too old")


@pytest.mark.parametrize(
    "kept",
    [
        {"BACKEND": "no.such.Class"},
        {"BACKEND": MEMORY, "OPTIONS": {"password": "SECRET"}},
    ],
    ids=["class", "options"],
)
def test_a_storage_that_cannot_be_made_is_an_error(
    kept: dict[str, Any], settings: Settings
):
    assert checks.check_attachment_storage() == []
    settings.STORAGES = {**settings.STORAGES, ALIAS: kept}
    (error,) = checks.check_attachment_storage()
    assert error.id == "workspaces.E003"
    assert "ACW_ATTACHMENT_STORAGE" in str(error.hint)
    assert "SECRET" not in str(error)
