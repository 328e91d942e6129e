from __future__ import annotations

import datetime as dt
import os
import re
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.witness import Lifeline, plant
from workspaces import git
from workspaces.exceptions import (
    GitError,
    GitFailed,
    GitMissing,
    GitOutputTooLarge,
    GitStopped,
    GitTimeout,
)
from workspaces.plumbing import supervision

ROOT = Path(__file__).resolve().parents[2]
SSH_URL = "ssh://git@git.example/project"


def test_what_git_prints_is_returned(checkout: Path):
    result = git.run(["log", "--format=%s"], cwd=checkout)
    assert result == git.Result(stdout=b"first\n", stderr="", status=0)


def test_a_commit_can_be_made_with_configuration_of_its_own(checkout: Path):
    who = {"user.name": "A = B", "user.email": "a@example.org"}
    git.run(["commit", "--allow-empty", "-m", "two"], cwd=checkout, config=who)
    assert git.run(["log", "-1", "--format=%an"], cwd=checkout).stdout == b"A = B\n"


def test_repository_and_files_can_be_named(checkout: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    status = git.run(
        ["status", "--porcelain"], git_dir=checkout / ".git", work_tree=elsewhere
    )
    assert status.stdout == b" D file\n"


def test_another_exit_status_is_an_error_unless_accepted(checkout: Path):
    arguments = ["rev-parse", "--verify", "--quiet", "refs/heads/nothing"]
    with pytest.raises(GitFailed) as failure:
        git.run(arguments, cwd=checkout)
    assert (failure.value.verb, failure.value.status) == ("rev-parse", 1)
    assert git.run(arguments, cwd=checkout, accept=(0, 1)).status == 1


def test_an_error_is_one_line_with_what_git_said(checkout: Path):
    with pytest.raises(GitFailed) as failure:
        git.run(["rev-parse", "--verify", "refs/heads/nothing"], cwd=checkout)
    said = "fatal: Needed a single revision"
    assert str(failure.value) == f"git rev-parse failed (exit status 128): {said}"


def test_git_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitMissing, match="no git in PATH"):
        git.run(["version"])


def test_a_directory_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(GitError, match=r"cannot run.*nowhere"):
        git.run(["status"], cwd=tmp_path / "nowhere")


def test_an_argument_with_nul_is_an_error_of_git():
    with pytest.raises(GitError, match="null byte"):
        git.run(["log", "a\0b"])


def test_the_version_is_read():
    assert git.version() >= git.OLDEST_VERSION


def test_an_unreadable_version_is_told(programs: Path):
    plant(programs / "git", "echo git of tomorrow")
    with pytest.raises(GitError, match="'git of tomorrow\\\\n'"):
        git.version()


def test_one_that_takes_too_long_is_ended_with_all_its_children(
    programs: Path, lifeline: Lifeline, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(supervision, "TERM_GRACE", 0.3)
    plant(
        programs / "ssh",
        f"exec 9>{lifeline.path}; echo here >&9",
        "trap '' TERM",
        "(trap '' TERM; while :; do sleep 1; done) &",
        "while :; do sleep 1; done",
    )
    with pytest.raises(GitTimeout, match=r"git ls-remote took longer than 0:00:00.5"):
        git.run(["ls-remote", "--", SSH_URL], timeout=dt.timedelta(seconds=0.5))
    assert lifeline.was_held_and_let_go()


def test_the_setting_bounds_every_timeout(programs: Path, settings: Settings):
    settings.ACW_GIT_TIMEOUT = dt.timedelta(seconds=0.3)
    plant(programs / "ssh", "exec sleep 1000")
    with pytest.raises(GitTimeout, match=r"0:00:00.3\d* \(ACW_GIT_TIMEOUT\)"):
        git.run(["ls-remote", "--", SSH_URL], timeout=dt.timedelta(hours=1))


def test_nothing_is_begun_for_a_caller_who_stops():
    with pytest.raises(GitStopped, match="not begun"):
        git.run(["version"], stop=lambda: True)


def test_it_ends_when_the_caller_stops(programs: Path, tmp_path: Path):
    begun = tmp_path / "begun"
    plant(programs / "ssh", f"touch {begun}", "exec sleep 1000")
    with pytest.raises(GitStopped):
        git.run(["ls-remote", "--", SSH_URL], stop=begun.exists)


def test_more_output_than_is_read_is_an_error(checkout: Path):
    with pytest.raises(GitOutputTooLarge, match="more than 3 bytes"):
        git.run(["log"], cwd=checkout, most=3)


def test_what_it_is_given_is_read(checkout: Path, tmp_path: Path):
    known = git.run(["hash-object", "file"], cwd=checkout).stdout
    for content in (b"content\n", b"", b"x" * 10_000_000):
        file = tmp_path / "given"
        file.write_bytes(content)
        arguments = ["hash-object", "--stdin"]
        from_bytes = git.run(arguments, stdin=content).stdout
        assert git.run(arguments, stdin=file).stdout == from_bytes
        assert (from_bytes == known) is (content == b"content\n")


def test_without_anything_given_there_is_nothing_to_read():
    empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n"
    assert git.run(["hash-object", "--stdin"]).stdout.decode() == empty


def test_what_is_not_read_to_its_end_is_no_error():
    assert git.run(["version"], stdin=b"x" * 4000).status == 0
    assert git.run(["version"], stdin=b"x" * 5_000_000).status == 0


def test_a_file_to_be_read_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(GitError, match=r"git version cannot run.*nothing"):
        git.run(["version"], stdin=tmp_path / "nothing")


def test_no_file_becomes_larger_than_is_allowed(checkout: Path):
    (checkout / "large").write_bytes(os.urandom(200_000))
    arguments = ["hash-object", "-w", "--no-filters", "--stdin-paths"]
    with pytest.raises(GitFailed):
        git.run(arguments, cwd=checkout, stdin=b"large\n", largest_file=100_000)
    files = [path for path in (checkout / ".git").rglob("*") if path.is_file()]
    assert all(path.stat().st_size <= 100_000 for path in files)
    git.run(arguments, cwd=checkout, stdin=b"large\n", largest_file=300_000)


def test_quick_commands_have_a_shorter_deadline(
    programs: Path, monkeypatch: pytest.MonkeyPatch
):
    plant(programs / "ssh", "exec sleep 1000")
    short = dt.timedelta(seconds=0.3)
    monkeypatch.setitem(git.LONGEST, "ls-remote", short)
    with pytest.raises(GitTimeout, match=r"0:00:00.3\d* and was ended"):
        git.run(["ls-remote", "--", SSH_URL], timeout=dt.timedelta(hours=1))


def test_a_longer_deadline_than_the_settings_can_be_asked_for(
    programs: Path, settings: Settings
):
    settings.ACW_GIT_TIMEOUT = dt.timedelta(seconds=0.1)
    plant(programs / "git", "exec sleep 1000")
    with pytest.raises(GitTimeout, match=r"0:00:00.4\d* and was ended"):
        git.run(["fetch"], longest=dt.timedelta(seconds=0.4))


def test_progress_is_told_as_it_comes(programs: Path, tmp_path: Path):
    told: list[str] = []
    seen = tmp_path / "seen"

    def tell(line: str) -> None:
        told.append(line)
        seen.touch()

    plant(
        programs / "git",
        "printf 'Receiving objects:  45%% (9/20)\\r' >&2",
        f"while [ ! -e {seen} ]; do :; done",
    )
    git.run(["fetch"], progress=tell)
    assert told == ["Receiving objects:  45% (9/20)"]


def test_who_cannot_be_told_of_progress_ends_it(programs: Path, lifeline: Lifeline):
    def tell(line: str) -> None:
        raise KeyError(line)

    plant(
        programs / "git",
        f"exec 9>{lifeline.path}; echo here >&9; echo line >&2; exec sleep 1000",
    )
    with pytest.raises(KeyError):
        git.run(["fetch"], progress=tell)
    assert lifeline.was_held_and_let_go()


# Other ways to start a process than subprocess, which import-linter keeps to workspaces.git and acw.
_STARTERS = re.compile(
    r"\b(?:os\.(?:system|popen|fork|forkpty|spawn\w*|posix_spawnp?|exec[lv]\w*)"
    r"|multiprocessing|ProcessPoolExecutor|create_subprocess_\w+|subprocess_(?:exec|shell)"
    r"|(?:import|from) pty|_posixsubprocess|__import__|from os import .*(?:system|popen|fork|spawn|exec).*)\b"
)


def test_nothing_else_starts_a_process():
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for package in ("jobs", "notify", "workspaces")
        for path in sorted((ROOT / package).rglob("*.py"))
        for match in _STARTERS.finditer(path.read_text())
    ]
    assert found == []
    ways = "os.fork() os.execv multiprocessing.Process asyncio.create_subprocess_exec"
    assert len(_STARTERS.findall(ways)) == 4
