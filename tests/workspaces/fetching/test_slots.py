from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest
from pytest_django import Settings

from workspaces import paths
from workspaces.exceptions import RemoteBusy
from workspaces.fetching import slots

URL = "https://git.example/team/{}.git"


@pytest.fixture(autouse=True)
def limit(settings: Settings) -> None:
    settings.ACW_GIT_HOST_LIMIT = 2


def test_so_many_at_once_from_one_host_and_no_more():
    with contextlib.ExitStack() as taken:
        for name in "ab":
            taken.enter_context(slots.taken(URL.format(name)))
        with (
            pytest.raises(RemoteBusy, match=r"2 fetches from git\.example"),
            slots.taken("https://GIT.example/other.git"),
        ):
            pass
        with slots.taken("https://elsewhere.example/x.git"):
            pass
    with slots.taken(URL.format("c")):
        pass


def test_another_spelling_of_the_url_is_the_same_host():
    with (
        slots.taken("git@git.example:a.git"),
        slots.taken("https://git.example/a"),
        pytest.raises(RemoteBusy),
        slots.taken("ssh://x@git.example/a"),
    ):
        pass


def test_a_path_has_no_host_and_needs_no_slot():
    with contextlib.ExitStack() as taken:
        for _ in range(5):
            taken.enter_context(slots.taken("/srv/git/a.git"))
            taken.enter_context(slots.taken("file:///srv/git/a.git"))
    assert not paths.slots_directory().exists()


def test_a_slot_is_free_again_when_its_holder_is_killed(settings: Settings):
    settings.ACW_GIT_HOST_LIMIT = 1
    with slots.taken(URL):
        (slot,) = paths.slots_directory().iterdir()
    code = (
        "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX);"
        "print('mine', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(slot)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == b"mine\n"
        with pytest.raises(RemoteBusy), slots.taken(URL):
            pass
        other.kill()
        other.wait()
    with slots.taken(URL):
        pass
