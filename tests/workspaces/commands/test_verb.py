from __future__ import annotations

import pytest
from django.core.management import CommandError

from tests.workspaces.commands.calling import workspace
from tests.workspaces.remote import Remote
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
