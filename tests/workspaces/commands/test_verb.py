from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError
from pytest_django import Settings

from tests.workspaces.commands.calling import workspace
from tests.workspaces.factories import WorkspaceFactory
from tests.workspaces.remote import Remote
from workspaces import cloning
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "../x", "{url}"], "workspace name '../x'"),
        (["add", "demo", "https://u:SECRET@h/x"], "leave it out"),
        (["add", "demo", "file:///nowhere"], "git fetch failed"),
        (["show", "nothing"], "there is no workspace 'nothing'"),
        (["fetch", "nothing"], "there is no workspace 'nothing'"),
        (["set-url", "nothing", "x"], "there is no workspace 'nothing'"),
        (["remove", "nothing"], "there is no workspace 'nothing'"),
    ],
)
def test_an_error_is_one_line_and_exit_status_1(
    remote: Remote, arguments: list[str], said: str
):
    with pytest.raises(CommandError) as error:
        workspace(*(argument.format(url=remote.url) for argument in arguments))
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert "SECRET" not in str(error.value)
    assert error.value.returncode == 1
    assert not Workspace.objects.exists()


@pytest.mark.parametrize(
    "arguments",
    [[], ["add"], ["add", "x"], ["add", "x", "y", "--now", "--no-wait"], ["nonsense"]],
)
def test_a_wrong_call_is_an_error(arguments: list[str]):
    with pytest.raises(CommandError):
        workspace(*arguments)


def test_what_the_disk_refuses_is_one_line_too(
    remote: Remote, settings: Settings, tmp_path: Path
):
    (tmp_path / "a\nfile").touch()
    settings.ACW_DATA_DIR = tmp_path / "a\nfile"
    with pytest.raises(
        CommandError, match=r"^the disk refused: Not a dir.*file/"
    ) as error:
        workspace("add", "demo", remote.url, "--now")
    assert "\n" not in str(error.value)


def test_ctrl_c_is_one_line_and_exit_status_130(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
):
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cloning, "make", interrupted)
    with pytest.raises(CommandError, match=r"^interrupted: ") as error:
        workspace("add", "demo", remote.url, "--now")
    assert error.value.returncode == 130
    assert not Workspace.objects.exists()


@pytest.mark.parametrize("verb", ["approve", "maintain"])
def test_what_needs_a_clone_says_that_there_is_none_yet(verb: str):
    WorkspaceFactory(name="demo", state="cloning")
    with pytest.raises(CommandError, match="demo is being cloned"):
        workspace(verb, "demo")
    assert Workspace.objects.get().maintenance_error == ""
