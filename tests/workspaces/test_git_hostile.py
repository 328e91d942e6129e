"""What a hostile repository, remote or environment cannot make git do."""

from __future__ import annotations

import tracemalloc
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.cpu import seconds_of
from tests.workspaces.forge import answering
from tests.workspaces.remote import Remote
from tests.workspaces.remote import git as plain_git
from tests.workspaces.witness import Lifeline, Tripwire, plant
from workspaces import git
from workspaces.exceptions import GitError, GitFailed

SSH_URL = "ssh://git@git.example/project"


def test_git_variables_of_the_server_do_not_reach_it(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plain_git("init", "--quiet", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_TRACE", "1")
    result = git.run(["log", "--format=%s"], cwd=checkout)
    assert (result.stdout, result.stderr) == (b"first\n", "")


def test_only_what_is_needed_of_the_environment_reaches_it(
    programs: Path, monkeypatch: pytest.MonkeyPatch
):
    plant(programs / "git", "env")
    monkeypatch.setenv("SECRET_KEY", "x")
    monkeypatch.setenv("DATABASE_URL", "x")
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    lines = git.run(["version"]).stdout.decode().splitlines()
    environment = dict(line.split("=", 1) for line in lines)
    assert environment["https_proxy"] == "http://proxy.example:3128"
    assert environment["GIT_TERMINAL_PROMPT"] == "0"
    assert environment["GIT_ALLOW_PROTOCOL"] == "https:ssh:file"
    assert not {"SECRET_KEY", "DATABASE_URL", "LD_PRELOAD"} & set(environment)


def test_it_speaks_english_whatever_the_servers_language(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LANGUAGE", "de")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    with pytest.raises(GitFailed, match="bad revision"):
        git.run(["log", "nothing", "--"], cwd=checkout)


def test_hooks_are_not_run(checkout: Path, tripwire: Tripwire):
    for hook in ("post-commit", "pre-commit", "post-checkout", "reference-transaction"):
        plant(checkout / ".git" / "hooks" / hook, str(tripwire.program))
    who = {"user.name": "A", "user.email": "a@example.org"}
    git.run(["commit", "--allow-empty", "-m", "x"], cwd=checkout, config=who)
    git.run(["checkout", "--quiet", "-b", "other"], cwd=checkout)
    assert tripwire.fired == ""
    plain_git("commit", "--quiet", "--allow-empty", "-m", "y", cwd=checkout)
    assert "tripwire.sh" in tripwire.fired  # with git alone they are


@pytest.mark.parametrize(
    ("key", "arguments"),
    [
        ("core.fsmonitor", ["status"]),
        ("core.pager", ["log"]),
        ("core.editor", ["commit", "--amend"]),
        ("gpg.program", ["commit", "--amend", "-S", "--no-edit"]),
        ("core.sshCommand", ["ls-remote", "--", SSH_URL]),
        ("core.gitProxy", ["ls-remote", "--", "git://git.example/x"]),
        ("alias.log", ["log"]),
    ],
)
def test_programs_that_a_repository_names_are_not_run(
    checkout: Path,
    tripwire: Tripwire,
    programs: Path,
    settings: Settings,
    key: str,
    arguments: list[str],
):
    plant(programs / "ssh", "exit 1")
    settings.ACW_GIT_PROTOCOLS = ["ssh", "git"]
    value = str(tripwire.program)
    plain_git(
        "config", key, f"!{value}" if key.startswith("alias") else value, cwd=checkout
    )
    who = {"user.name": "A", "user.email": "a@example.org"}
    if key == "gpg.program":
        with pytest.raises(
            GitFailed
        ):  # signing was asked for by the test, and has no key
            git.run(arguments, cwd=checkout, config={**who, "gpg.program": "false"})
    else:
        git.run(arguments, cwd=checkout, config=who, accept=(0, 1, 128))
    assert tripwire.fired == ""


@pytest.mark.parametrize(
    "url", ["ext::{program} x", "ext::sh -c {program}%", "fd::9", "file://{remote}"]
)
def test_protocols_that_are_not_allowed_are_refused_by_git_too(
    checkout: Path, tripwire: Tripwire, remote: Remote, settings: Settings, url: str
):
    settings.ACW_GIT_PROTOCOLS = ["https", "ssh"]
    # A repository can allow them for itself; the server's word counts more.
    for protocol in ("ext", "fd", "file"):
        plain_git("config", f"protocol.{protocol}.allow", "always", cwd=checkout)
    named = url.format(program=tripwire.program, remote=remote.path)
    with pytest.raises(GitFailed, match=r"transport '.*' not allowed"):
        git.run(["fetch", "--", named], cwd=checkout)
    assert tripwire.fired == ""


@pytest.mark.parametrize(
    "name", ["--upload-pack={program}", "--upload={program}", "-u{program}"]
)
def test_after_two_dashes_nothing_is_an_option(
    checkout: Path, tripwire: Tripwire, name: str
):
    url = name.format(program=tripwire.program)
    with pytest.raises(GitFailed):
        git.run(["fetch", "--", url], cwd=checkout)
    assert tripwire.fired == ""


@pytest.fixture
def locked_url(settings: Settings) -> Iterator[str]:
    """Of a forge that wants a user and a password."""
    settings.ACW_GIT_PROTOCOLS = ["http"]
    with answering(401) as url:
        yield url


def test_a_question_for_a_password_fails_and_asks_no_planted_program(
    checkout: Path,
    tripwire: Tripwire,
    locked_url: str,
    monkeypatch: pytest.MonkeyPatch,
):
    program = str(tripwire.program)
    monkeypatch.setenv("SSH_ASKPASS", program)
    monkeypatch.setenv("GIT_ASKPASS", program)
    monkeypatch.setenv("DISPLAY", ":0")
    plain_git("config", "core.askPass", program, cwd=checkout)
    plain_git("config", "credential.helper", program, cwd=checkout)
    with pytest.raises(GitFailed, match="Authentication failed"):
        git.run(["ls-remote", "--", locked_url], cwd=checkout)
    assert tripwire.fired == ""


def test_ssh_asks_nothing_and_trusts_no_unknown_host(programs: Path):
    plant(programs / "ssh", 'echo "$@" >&2', "exit 255")
    with pytest.raises(GitFailed) as failure:
        git.run(["ls-remote", "--", SSH_URL])
    assert "-oBatchMode=yes -oStrictHostKeyChecking=yes" in failure.value.stderr


def test_hostile_stderr_is_bounded_and_made_presentable(programs: Path):
    plant(
        programs / "ssh",
        "printf 'fatal: \\033[2J\\000\\r\\nhttps://user:SECRET@git.example/x?t=SECRET\\n' >&2",
        "head -c 3000000 /dev/zero | tr '\\0' x >&2",
        "echo ' end of it' >&2",
        "exit 1",
    )
    with pytest.raises(GitFailed) as failure:
        git.run(["ls-remote", "--", SSH_URL])
    stderr, text = failure.value.stderr, str(failure.value)
    assert len(stderr) < 100_000
    assert "SECRET" not in stderr
    assert all(char == "\n" or char.isprintable() for char in stderr)
    assert len(text) < 700
    assert "\n" not in text


def test_a_flood_of_stderr_takes_neither_memory_nor_much_work(programs: Path):
    plant(
        programs / "ssh",
        "yes 'https://user:SECRET@git.example' | head -c 300000000 >&2",
        "exit 1",
    )

    def ask() -> None:
        with pytest.raises(GitFailed) as failure:
            git.run(["ls-remote", "--", SSH_URL])
        assert "bytes left out" in failure.value.stderr
        assert "SECRET" not in failure.value.stderr

    tracemalloc.start()
    try:
        spent = seconds_of(ask)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000
    # Draining it is most of that; a pattern without a bound takes minutes for what is kept.
    assert spent < 30


def test_one_long_word_costs_no_more_than_its_length(programs: Path):
    plant(programs / "ssh", "head -c 74000 /dev/zero | tr '\\0' x >&2", "exit 1")

    def ask() -> None:
        with pytest.raises(GitFailed):
            git.run(["ls-remote", "--", SSH_URL])

    assert seconds_of(ask) < 5


def test_the_password_of_a_proxy_is_never_told(
    programs: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("https_proxy", "http://user:p%40ssw%2Frd@proxy.example:3128")
    token = b64encode(b"user:p@ssw/rd").decode()
    plant(
        programs / "ssh",
        f"echo 'raw p@ssw/rd, as a URL has it p%40ssw%2Frd, as a header has it {token}' >&2",
        "exit 1",
    )
    with pytest.raises(GitError) as failure:
        git.run(["ls-remote", "--", SSH_URL])
    assert failure.value.stderr.startswith(
        "raw ***, as a URL has it ***, as a header has it ***\n"
    )


def test_ssh_that_leaves_a_process_behind_leaves_none(
    programs: Path, lifeline: Lifeline
):
    plant(
        programs / "ssh",
        f"exec 9>{lifeline.path}; echo here >&9",
        "sleep 1000 >/dev/null 2>&1 &",
        "exit 1",
    )
    with pytest.raises(GitFailed):
        git.run(["ls-remote", "--", SSH_URL])
    assert lifeline.was_held_and_let_go()
