from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

import pytest

from acw.embedded import server_user
from acw.embedded.errors import ClusterError
from acw.embedded.server_user import ServerUser

ME = ServerUser(os.geteuid(), os.getegid())
SOMEONE_ELSE = ServerUser(os.geteuid() + 4321, os.getegid() + 4321)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_ordinary_user_runs_the_server_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert server_user.for_data_dir(tmp_path / "new") is None


def test_root_runs_it_as_postgres_or_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    user = server_user.for_data_dir(tmp_path / "new")
    assert user is not None
    assert pwd.getpwuid(user.uid).pw_name in ("postgres", "nobody")


def test_root_without_such_users_is_told_the_ways_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(server_user, "_CANDIDATES", ("no-such-user",))
    with pytest.raises(ClusterError, match="ordinary user, or set DATABASE_URL"):
        server_user.for_data_dir(tmp_path / "new")


def test_the_way_is_opened_for_passing_and_no_further(tmp_path: Path):
    closed, passable = tmp_path / "closed", tmp_path / "closed" / "passable"
    passable.mkdir(parents=True)
    closed.chmod(0o700)
    passable.chmod(0o711)
    target = passable / "postgres"
    target.mkdir(mode=0o700)
    server_user.open_way(target, SOMEONE_ELSE)
    assert (mode(closed), mode(passable), mode(target)) == (0o701, 0o711, 0o700)


def test_what_the_user_may_pass_already_stays_closed_to_others(tmp_path: Path):
    owned = tmp_path / "owned"
    owned.mkdir(mode=0o700)
    server_user.open_way(owned / "postgres", ME)
    assert mode(owned) == 0o700
    owned.chmod(0o710)
    server_user.open_way(owned / "postgres", ServerUser(SOMEONE_ELSE.uid, ME.gid))
    assert mode(owned) == 0o710


def test_a_tree_made_under_a_strict_umask_becomes_readable(tmp_path: Path):
    tree = tmp_path / "wheel"
    tree.mkdir(mode=0o700)
    program, table = tree / "postgres", tree / "table"
    program.touch(mode=0o700)
    table.touch(mode=0o600)
    (tree / "link").symlink_to("table")
    server_user.make_readable(tree)
    assert (mode(tree), mode(program), mode(table)) == (0o705, 0o705, 0o604)
