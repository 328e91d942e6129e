from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.workspaces.remote import Remote, git
from workspaces import clone_files
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db

REMOTE = "refs/remotes/origin/"
PLAIN = '[core]\n\tbare = true\n[remote "origin"]\n\turl = /x\n\tfetch = +a:b\n'


def as_git_lists(repository: Repository) -> dict[bytes, bytes]:
    listed = git(
        "for-each-ref",
        "--format=%(refname) %(objectname)",
        REMOTE,
        cwd=repository.path,
    ).encode()
    found = dict(line.split(b" ") for line in listed.splitlines())
    found.pop(f"{REMOTE}HEAD".encode(), None)
    return found


def test_a_new_clone_keeps_urls(repository: Repository):
    assert clone_files.keeps_urls(repository.path)


def test_what_agents_usually_configure_keeps_urls(repository: Repository):
    for key, value in {
        "branch.acw/work.remote": "origin",
        "branch.acw/work.merge": "refs/heads/main",
        "user.name": "Ägent = 1",
        "pull.rebase": "true",
    }.items():
        git("config", key, value, cwd=repository.path)
    assert clone_files.keeps_urls(repository.path)


@pytest.mark.parametrize(
    "text",
    [
        '[url "/evil"]\n\tinsteadOf = /x\n',
        '[URL "/evil"]\n\tINSTEADOF = /x\n',
        '[url "/evil"] insteadOf = /x\n',
        '[core] bare = true\n[url "/evil"]insteadOf=/x\n',
        '[core]\n\tbare = true [url "/evil"]\n\tinsteadOf = /x\n',
        '[core]\r[url "/evil"]\r\n\tinsteadOf = /x\r\n',
        '  [url "/evil"]\n\tinsteadOf = /x\n',
        '\t[ url "/evil"]\n\tinsteadOf = /x\n',
        "[url./evil]\n\tinsteadOf = /x\n",
        '[core]\n\teditor = a \\\n[url "/evil"]\n\tinsteadOf = /x\n',
        '[core]\n\teditor = "a"\n[url "/evil"]\n\tinsteadOf = /x\n',
        '[core]\n# \\\n[url "/evil"]\n\tinsteadOf = /x\n',
        '[core]\n\t; "\n[url "/evil"]\n\tinsteadOf = /x\n',
        '\ufeff[url "/evil"]\n\tinsteadOf = /x\n',
        '[branch "a\\"]\n[url "/evil"]\n\tinsteadOf = /x\n',
        '[branch "a"] [url "/evil"]\n\tinsteadOf = /x\n',
        '[branch "a"]x = 1\n',
        '[remote "/x"]\n\turl = /evil\n',
        '[remote "ORIGIN"]\n\turl = /evil\n',
        "[remote.origin]\n\turl = /evil\n",
        '[Remote "git@host:x"]\n\tURL = /evil\n',
        "[include]\n\tpath = /evil\n",
        '[includeIf "gitdir:/"]\n\tpath = /evil\n',
        "[InClUdE] path = /evil\n",
        "[extensions]\n\tworktreeConfig = true\n",
        "[http]\n\tproxy = http://evil.example\n",
        '[http "https://git.example/"]\n\tsslVerify = false\n',
        "[core]\n\tx",
        "[core]\n\tx = 1\0\n",
        "[core]\n\tx = 1\x0b\n",
    ],
)
def test_any_other_spelling_is_left_to_git(repository: Repository, text: str):
    (repository.path / "config").write_text(PLAIN + text, newline="")
    assert not clone_files.keeps_urls(repository.path)


@pytest.mark.parametrize("name", ["commondir", "remotes", "branches"])
def test_what_takes_the_place_of_the_configuration_is_left_to_git(
    repository: Repository, name: str
):
    (repository.path / name).symlink_to("/nowhere")
    assert not clone_files.keeps_urls(repository.path)


def test_a_configuration_that_is_no_small_regular_file_is_left_to_git(
    repository: Repository, tmp_path: Path
):
    config = repository.path / "config"
    config.rename(tmp_path / "config")
    assert not clone_files.keeps_urls(repository.path)
    config.symlink_to(tmp_path / "config")
    assert not clone_files.keeps_urls(repository.path)
    config.unlink()
    os.mkfifo(config)
    assert not clone_files.keeps_urls(repository.path)
    config.unlink()
    config.write_text(PLAIN + "\n" * 70_000)
    assert not clone_files.keeps_urls(repository.path)


def test_branches_are_those_that_git_lists(repository: Repository, remote: Remote):
    for branch in ("topic", "a/b/c", "über"):
        remote.push("x", content=branch, branch=branch)
    repository.fetch(remote.url, timeout=None, stop=None)
    found = clone_files.references(repository.path, REMOTE)
    assert found == as_git_lists(repository)
    assert len(found) == 4


def test_packed_branches_are_found_and_newer_files_count_more(
    repository: Repository, remote: Remote
):
    remote.push("x", branch="topic")
    repository.fetch(remote.url, timeout=None, stop=None)
    git("tag", "-a", "-m", "x", "v1", "origin/main", cwd=repository.path)
    git("pack-refs", "--all", cwd=repository.path)
    assert clone_files.references(repository.path, REMOTE) == as_git_lists(repository)
    new = remote.push("y")
    repository.fetch(remote.url, timeout=None, stop=None)
    found = clone_files.references(repository.path, REMOTE)
    assert found == as_git_lists(repository)
    assert found[f"{REMOTE}main".encode()] == new.encode()


def test_without_any_branch_there_is_none(repository: Repository):
    git("update-ref", "-d", f"{REMOTE}main", cwd=repository.path)
    git("symbolic-ref", "-d", f"{REMOTE}HEAD", cwd=repository.path)
    assert clone_files.references(repository.path, REMOTE) == {}


def test_files_that_are_no_plain_references_are_left_to_git(repository: Repository):
    odd = repository.path / REMOTE / "odd"
    for content in ("ref: refs/heads/x\n", "", "0" * 39, "x" * 1000):
        odd.write_text(content)
        assert clone_files.references(repository.path, REMOTE) is None
    odd.unlink()
    odd.symlink_to("main")
    assert clone_files.references(repository.path, REMOTE) is None
    odd.unlink()
    os.mkfifo(odd)
    assert clone_files.references(repository.path, REMOTE) is None


def test_git_is_asked_for_many_branches(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(clone_files, "MOST_REFS", 3)
    commit = git("rev-parse", "origin/main", cwd=repository.path)
    for number in range(3):
        git("update-ref", f"{REMOTE}b{number}", commit, cwd=repository.path)
    assert clone_files.references(repository.path, REMOTE) is None


@pytest.mark.parametrize("name", ["commondir", "reftable"])
def test_references_that_are_kept_elsewhere_are_left_to_git(
    repository: Repository, name: str
):
    (repository.path / name).mkdir()
    assert clone_files.references(repository.path, REMOTE) is None


def test_packed_references_that_are_no_small_file_are_left_to_git(
    repository: Repository,
):
    packed = repository.path / "packed-refs"
    packed.write_text("#" * 300_000)
    assert clone_files.references(repository.path, REMOTE) is None
    packed.unlink()
    os.mkfifo(packed)
    assert clone_files.references(repository.path, REMOTE) is None


def test_a_reference_is_there_as_a_file_or_is_not_known(repository: Repository):
    assert clone_files.has_reference(repository.path, f"{REMOTE}main")
    assert not clone_files.has_reference(repository.path, f"{REMOTE}HEAD")
    assert not clone_files.has_reference(repository.path, f"{REMOTE}../origin/main")
    assert not clone_files.has_reference(repository.path, f"{REMOTE}nothing")
    git("pack-refs", "--all", cwd=repository.path)
    assert not clone_files.has_reference(repository.path, f"{REMOTE}main")


def test_whatever_is_trusted_means_to_git_what_it_says(repository: Repository):
    """Of every text that is accepted, git itself reads no key that leads anywhere."""
    pieces = [
        "[core]", '[branch "b c"]', '[remote "origin"]', "[url./e]", '[url "/e"]', "[include]",
        "\tinsteadOf = /x", "\tpath = /e", "\tx = a # b", "\tx = ;", "", " ", "\ty=[url \"/e\"]",
        "\ty = \\", '\ty = "', "[core] insteadOf = /x", "\tbare",
    ]  # fmt: skip
    config = repository.path / "config"
    accepted = 0
    for first in pieces:
        for second in pieces:
            config.write_text(f"{PLAIN}{first}\n{second}\n")
            if not clone_files.keeps_urls(repository.path):
                continue
            accepted += 1
            listed = subprocess.run(
                ["git", "config", "--null", "--name-only", "--file", config, "--list"],
                capture_output=True,
                check=True,
            ).stdout.split(b"\0")
            names = {key.partition(b".")[0] for key in listed if key}
            assert names <= {b"core", b"branch", b"remote"}
    assert accepted > 20
