from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.remote import git
from workspaces.archiving import manifest, reading
from workspaces.archiving.manifest import Kind, Manifest
from workspaces.archiving.reading import Top
from workspaces.exceptions import ArchiveDamaged, ArchiveTooLarge, GitStopped


def of(path: Path, **options: object) -> Manifest:
    with Top(path) as top:
        return manifest.of(top, **options)  # type: ignore[arg-type]


def test_every_entry_is_there_with_its_mode_and_what_git_calls_its_bytes(
    tmp_path: Path,
):
    (tmp_path / "d").mkdir(mode=0o750)
    (tmp_path / "d" / "file").write_bytes(b"one\r\ntwo")
    (tmp_path / "d" / "file").chmod(0o640)
    (tmp_path / "link").symlink_to("d")
    os.mkfifo(tmp_path / "pipe", 0o600)
    found = {entry.path: entry for entry in of(tmp_path).entries}
    assert [(path, entry.kind) for path, entry in found.items()] == [
        (b"", Kind.DIRECTORY),
        (b"d", Kind.DIRECTORY),
        (b"d/file", Kind.FILE),
        (b"link", Kind.LINK),
        (b"pipe", Kind.FIFO),
    ]
    assert (found[b"d"].mode, found[b"d/file"].mode) == (0o750, 0o640)
    assert found[b"d/file"].size == 8
    assert found[b"d/file"].blob == git(
        "hash-object", "--no-filters", str(tmp_path / "d" / "file")
    )
    assert found[b"link"].blob == manifest.blob_name(b"d")


def test_what_no_disk_bounds_is_not_read_unless_it_is_left_out(
    tmp_path: Path, settings: Settings
):
    settings.ACW_ARCHIVE_MAX_SIZE = 2**20
    for name in ("one", "two"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(2**20)
    assert len(of(tmp_path, leave_out={b"two"}).entries) == 2
    with pytest.raises(ArchiveTooLarge, match="two has"):
        of(tmp_path)


def test_a_caller_who_stops_need_not_wait_for_the_end_of_a_file(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"x" * 3 * reading.CHUNK)
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked == 3

    with pytest.raises(GitStopped):
        of(tmp_path, stop=stop)


@pytest.mark.parametrize("change", ["bytes", "mode", "name", "link", "kind", "empty"])
def test_the_digest_is_another_for_every_difference(tmp_path: Path, change: str):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("a")
    before = of(tmp_path).digest
    os.utime(tmp_path / "file", (1, 1))
    assert of(tmp_path).digest == before
    if change == "bytes":
        (tmp_path / "file").write_text("y")
    elif change == "mode":
        (tmp_path / "file").chmod(0o600)
    elif change == "name":
        (tmp_path / "file").rename(tmp_path / "renamed")
    elif change == "link":
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to("b")
    elif change == "kind":
        (tmp_path / "link").unlink()
        (tmp_path / "link").write_text("a")
    else:
        (tmp_path / "more").mkdir()
    assert of(tmp_path).digest != before


def test_bits_that_make_a_program_run_as_somebody_are_of_no_account(tmp_path: Path):
    (tmp_path / "program").write_text("x")
    (tmp_path / "program").chmod(0o755)
    before = of(tmp_path).digest
    (tmp_path / "program").chmod(0o6755)
    assert of(tmp_path).digest == before


def test_sockets_and_what_is_not_wanted_are_left_out_and_named(tmp_path: Path):
    (tmp_path / "cache" / "deep").mkdir(parents=True)
    (tmp_path / "lock").touch()
    with socket.socket(socket.AF_UNIX) as listening:
        directory = os.open(tmp_path, os.O_RDONLY)
        # A path below here may be too long for a socket's name.
        listening.bind(f"/proc/self/fd/{directory}/socket")
        found = of(tmp_path, leave_out={b"cache"}, but=lambda path: path == b"lock")
        os.close(directory)
    assert [entry.path for entry in found.entries] == [b""]
    assert found.left_out == (b"cache", b"socket")


def test_it_is_read_again_as_it_was_written(tmp_path: Path):
    for name in (b"new\nline", b"\xff\xfe", b'"\\', "é☃".encode()):
        (tmp_path / os.fsdecode(name)).write_bytes(name)
    before = of(tmp_path)
    again = manifest.from_json(before.as_json())
    assert again.entries == before.entries
    assert again.digest == before.digest


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}x",
        b"[1]",
        b'[["a","file",420,1,"",""],["b"]]',
        b'[["a","door",420,1,"",""]]',
        b'[["../a","file",420,1,"",""]]',
        b'[["a/../../b","link",420,1,"",""]]',
        b'[["/etc/passwd","file",420,1,"",""]]',
        b'[["a\\u0000b","file",420,1,"",""]]',
    ],
)
def test_what_is_no_manifest_or_leads_elsewhere_is_damage(text: bytes):
    with pytest.raises(ArchiveDamaged):
        manifest.from_json(text)


def test_there_is_an_end_to_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(manifest, "ENTRIES_MOST", 3)
    for name in "abc":
        (tmp_path / name).touch()
    with pytest.raises(ArchiveTooLarge, match="more than 3 files"):
        of(tmp_path)
    with pytest.raises(GitStopped):
        of(tmp_path, stop=lambda: True)


def test_a_file_that_grows_while_it_is_read_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "file").write_text("x")
    real = Top.names

    def growing(top: Top, path: bytes) -> list[tuple[bytes, os.stat_result]]:
        names = real(top, path)
        (tmp_path / "file").write_text("xy")
        return names

    monkeypatch.setattr(Top, "names", growing)
    with pytest.raises(Exception, match="was changed while it was read"):
        of(tmp_path)
