from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from acw.embedded import socket_dir
from acw.embedded.errors import ClusterError


@pytest.fixture(autouse=True)
def short_temporary_directory(monkeypatch: pytest.MonkeyPatch):
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        monkeypatch.setattr(tempfile, "tempdir", directory)
        yield Path(directory)


LONG = Path("/srv", "x" * 90)


def test_the_socket_is_beside_the_data():
    assert socket_dir.for_data_dir(Path("/srv/pg"), owner=None) == Path("/srv/pg")


@pytest.mark.parametrize("data_dir", [LONG, Path("/srv/a,b")])
def test_a_path_that_cannot_hold_it_gets_a_private_directory(
    data_dir: Path, short_temporary_directory: Path
):
    chosen = socket_dir.for_data_dir(data_dir, owner=None)
    assert chosen.parent == short_temporary_directory
    assert stat.S_IMODE(chosen.stat().st_mode) == 0o700
    assert socket_dir.for_data_dir(data_dir, owner=None) == chosen
    assert socket_dir.for_data_dir(Path(f"{data_dir}2"), owner=None) != chosen


def test_a_directory_that_others_may_enter_is_refused():
    socket_dir.for_data_dir(LONG, owner=None).chmod(0o755)
    with pytest.raises(ClusterError, match="not a private directory"):
        socket_dir.for_data_dir(LONG, owner=None)


def test_a_directory_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch):
    socket_dir.for_data_dir(LONG, owner=None)
    somebody_else = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: somebody_else)
    with pytest.raises(ClusterError, match=f"of user {somebody_else}"):
        socket_dir.for_data_dir(LONG, owner=None)


def test_a_link_is_refused(short_temporary_directory: Path):
    chosen = socket_dir.for_data_dir(LONG, owner=None)
    chosen.rmdir()
    elsewhere = short_temporary_directory / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    chosen.symlink_to(elsewhere)
    with pytest.raises(ClusterError, match="not a private directory"):
        socket_dir.for_data_dir(LONG, owner=None)
