from __future__ import annotations

import os
from pathlib import Path

import pytest

from workspaces.archiving.reading import Top
from workspaces.exceptions import GitStopped, NotArchivable


def test_no_link_on_the_way_is_followed(tmp_path: Path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("secret")
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "top" / "direct").symlink_to(tmp_path / "outside" / "file")
    with Top(tmp_path / "top") as top:
        for path in (b"link/file", b"direct", b"../outside/file", b"link/../x"):
            with pytest.raises(NotArchivable), top.file(path):
                pass
    with pytest.raises(NotArchivable):
        Top(tmp_path / "top" / "link")


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with Top(tmp_path) as top, pytest.raises(NotArchivable, match="was changed"):
        top.read(b"pipe", most=10)


def test_a_directory_in_the_place_of_a_file_is_told_like_any_other_change(
    tmp_path: Path,
):
    (tmp_path / "file").mkdir()
    with Top(tmp_path) as top, pytest.raises(NotArchivable, match="was changed"):
        top.read(b"file", most=10)


def test_a_change_while_it_is_read_is_noticed(tmp_path: Path):
    (tmp_path / "file").write_text("first")
    with (
        Top(tmp_path) as top,
        pytest.raises(NotArchivable, match="file was changed while it was read"),
        top.file(b"file"),
    ):
        (tmp_path / "file").write_text("second")


def test_what_cannot_be_read_is_named_and_no_control_character_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "a\x1b[2Jb").write_text("x")
    real = os.open

    def refuse(path: object, *args: object, **options: object) -> int:
        if path == b"a\x1b[2Jb":
            raise PermissionError(13, "Permission denied")
        return real(path, *args, **options)  # type: ignore[arg-type]

    with Top(tmp_path) as top:
        monkeypatch.setattr(os, "open", refuse)
        with pytest.raises(NotArchivable, match="cannot be read") as raised:
            top.read(b"a\x1b[2Jb", most=10)
    assert "\x1b" not in str(raised.value)
    assert "Permission denied" in str(raised.value)


def test_what_is_missing_or_too_large_is_none(tmp_path: Path):
    (tmp_path / "file").write_text("12345")
    with Top(tmp_path) as top:
        assert top.read(b"file", most=5) == b"12345"
        assert top.read(b"file", most=4) is None
        assert top.read(b"missing", most=4) is None
        assert top.read(b"missing/below", most=4) is None


def test_what_no_path_can_name_is_refused(tmp_path: Path):
    with (
        Top(tmp_path) as top,
        pytest.raises(NotArchivable, match="deeper"),
        top.directory(b"/".join([b"a"] * 3000)),
    ):
        pass


def test_reading_stops_when_the_caller_does(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with Top(tmp_path) as top, pytest.raises(GitStopped):
        list(top.chunks(b"file", stop=lambda: True))
