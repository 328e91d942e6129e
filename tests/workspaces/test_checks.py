from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces.witness import plant
from workspaces.checks import check_git


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
