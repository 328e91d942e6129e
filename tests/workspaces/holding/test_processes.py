from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from workspaces.holding import processes


@contextmanager
def process(*, cwd: Path, program: str = "") -> Iterator[int]:
    """A process that lives as long as the block."""
    ready = f"{program}\nimport sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", ready],
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout
        assert child.stdin
        child.stdout.readline()
        yield child.pid
        child.stdin.close()


def test_a_process_is_found_by_where_it_works(tmp_path: Path):
    below = tmp_path / "tree" / "below"
    below.mkdir(parents=True)
    for place in (tmp_path / "tree", below):
        with process(cwd=place) as number:
            assert processes.in_use(tmp_path / "tree") == {number: [str(place)]}
    assert processes.in_use(tmp_path / "tree") == {}


def test_a_process_is_found_by_what_it_runs_or_has_mapped(tmp_path: Path):
    program = tmp_path / "tree" / "bin" / "python"
    program.parent.mkdir(parents=True)
    shutil.copy("/bin/cat", program)
    with subprocess.Popen(
        [program], cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin
        assert child.stdout
        # It answers once it is itself.
        child.stdin.write(b"x\n")
        child.stdin.flush()
        child.stdout.readline()
        assert processes.in_use(tmp_path / "tree") == {child.pid: [str(program)]}
        assert processes.in_use(tmp_path / "tree" / "bi") == {}
        child.stdin.close()


def test_a_process_is_found_by_what_it_has_open(tmp_path: Path):
    file = tmp_path / "tree" / "file"
    file.parent.mkdir()
    file.touch()
    with process(cwd=Path("/"), program=f"opened = open({str(file)!r})") as number:
        assert processes.in_use(tmp_path / "tree") == {number: [str(file)]}


def test_all_that_one_process_uses_is_found(tmp_path: Path):
    file = tmp_path / "file"
    (tmp_path / "one").mkdir()
    program = f"opened = open({str(file)!r}, 'w')"
    with process(cwd=tmp_path / "one", program=program) as number:
        found = processes.in_use(tmp_path)
        assert found == {number: [str(tmp_path / "one"), str(file)]}


def test_a_directory_whose_name_begins_the_same_is_another(tmp_path: Path):
    (tmp_path / "tree-2").mkdir()
    with process(cwd=tmp_path / "tree-2"):
        assert processes.in_use(tmp_path / "tree") == {}


def test_this_process_itself_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    assert os.getcwd() == str(tmp_path)
    assert processes.in_use(tmp_path) == {}


def test_where_the_system_cannot_say_nothing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(processes, "_PROC", str(tmp_path / "none"))
    with process(cwd=tmp_path):
        assert processes.in_use(tmp_path) == {}
