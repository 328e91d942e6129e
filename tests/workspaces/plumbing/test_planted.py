from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.workspaces.remote import git
from tests.workspaces.witness import plant
from workspaces.models import Worktree
from workspaces.plumbing import planted
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db

PLAIN = '[core]\n\tbare = true\n[remote "origin"]\n\turl = /x\n\tfetch = +a:b\n'

SUSPECT = (
    "include.path",
    "includeIf.gitdir:/.path",
    "filter.x.clean",
    "filter.x.smudge",
    "filter.x.process",
    "url./elsewhere.insteadOf",
    "url./elsewhere.pushInsteadOf",
    "credential.helper",
    "credential.https://git.example.helper",
    "core.sshCommand",
    "core.hooksPath",
    "core.fsmonitor",
    "core.worktree",
    "core.askPass",
    "core.editor",
    "core.pager",
    "core.attributesFile",
    "core.gitProxy",
    "core.alternateRefsCommand",
    "diff.external",
    "diff.x.command",
    "diff.x.textconv",
    "merge.x.driver",
    "remote.origin.uploadpack",
    "remote.a.b.receivepack",
    "remote.origin.vcs",
    "remote.origin.proxy",
    "remote.origin.promisor",
    "protocol.ext.allow",
    "gpg.program",
    "gpg.ssh.program",
    "http.proxy",
    "http.https://git.example/.sslVerify",
    "extensions.partialClone",
    "submodule.x.update",
    "sequence.editor",
    "gc.recentObjectsHook",
    "fsck.skipList",
    "fetch.fsck.skipList",
)
USUAL = {
    "branch.acw/work.remote": "origin",
    "branch.acw/work.merge": "refs/heads/main",
    "user.name": "Ägent = 1",
    "user.email": "a@example.org",
    "pull.rebase": "true",
    "push.default": "current",
    "merge.conflictStyle": "zdiff3",
    "diff.algorithm": "histogram",
    "rerere.enabled": "true",
    "remote.fork.url": "https://git.example/fork",
    "remote.fork.fetch": "+refs/heads/*:refs/remotes/fork/*",
    "alias.st": "status",
}
LFS = {
    "filter.lfs.clean": "git-lfs clean -- %f",
    "filter.lfs.smudge": "git-lfs smudge -- %f",
    "filter.lfs.process": "git-lfs filter-process",
    "filter.lfs.required": "true",
}


def found(repository: Repository) -> list[str]:
    return [str(one) for one in planted.look(repository.path)]


def without_git(text: str | bytes) -> bool:
    """Whether it is known for plain without a process."""
    raw = text.encode() if isinstance(text, str) else text
    return planted._PLAIN.fullmatch(raw) is not None


def test_a_new_clone_is_known_for_plain_without_git(
    repository: Repository, worktree: Worktree, programs: Path
):
    plant(programs / "git", "exit 1")
    assert found(repository) == []


@pytest.mark.parametrize("values", [USUAL, LFS], ids=["usual", "lfs"])
def test_what_agents_usually_configure_is_not_suspect(
    repository: Repository, values: dict[str, str]
):
    for key, value in values.items():
        git("config", key, value, cwd=repository.path)
    assert found(repository) == []


def test_a_sparse_checkout_is_not_suspect(repository: Repository, worktree: Worktree):
    git("sparse-checkout", "set", "docs", cwd=Path(worktree.path))
    assert "worktreeconfig" in (repository.path / "config").read_text().lower()
    assert found(repository) == []


def test_every_key_that_runs_or_redirects_is_found(repository: Repository):
    config = repository.path / "config"
    before = config.read_bytes()
    for key in SUSPECT:
        git("config", key, "v", cwd=repository.path)
        section, _, rest = key.partition(".")
        middle, dot, name = rest.rpartition(".")
        printed = f"{section.lower()}.{middle}{dot}{name.lower()}"
        assert found(repository) == [f"config: {printed} = v"], key
        config.write_bytes(before)


def test_other_commands_in_the_place_of_git_lfs_are_found(repository: Repository):
    for key in LFS:
        git("config", key, "sh -c evil", cwd=repository.path)
    assert len(found(repository)) == len(LFS)


@pytest.mark.parametrize(
    "text",
    [
        '[url "/evil"]\n\tinsteadOf = /x\n',
        '[URL "/evil"]\n\tINSTEADOF = /x\n',
        '[url "/evil"] insteadOf = /x\n',
        '[core] bare = true\n[url "/evil"]insteadOf=/x\n',
        '[core]\r[url "/evil"]\r\n\tinsteadOf = /x\r\n',
        '  [url "/evil"]\n\tinsteadOf = /x\n',
        "[url./evil]\n\tinsteadOf = /x\n",
        '[core]\n\teditor = a \\\n[url "/evil"]\n\tinsteadOf = /x\n',
        '[core]\n# \\\n[url "/evil"]\n\tinsteadOf = /x\n',
        '\ufeff[url "/evil"]\n\tinsteadOf = /x\n',
        '[branch "a"] [url "/evil"]\n\tinsteadOf = /x\n',
        "[InClUdE] path = /evil\n",
        "[core]\n\tfsmonitor\n",
        "[core]\n\tHooksPath = x\n",
        '[remote "o"]\n\tuploadPack = x\n',
        '[merge "x"]\n\tdriver = x\n',
    ],
)
def test_no_spelling_hides_a_key(repository: Repository, text: str):
    (repository.path / "config").write_text(PLAIN + text)
    assert found(repository) != []


def test_whatever_is_plain_means_to_git_what_it_says():
    """Of every text that is known for plain, git itself reads no key that is suspect."""
    pieces = [
        "[core]", '[branch "b c"]', '[remote "origin"]', "[url./e]", '[url "/e"]', "[include]",
        "\tinsteadOf = /x", "\tpath = /e", "\tx = a # b", "\tx = ;", "", " ", "\ty=[url \"/e\"]",
        "\ty = \\", '\ty = "', "[core] insteadOf = /x", "\tbare", "\tbare = false", "\thooksPath = x",
        "\tuploadpack = x", "\turl = y", "[user]", "[gc]", "\trecentObjectsHook = x", "\tpruneExpire = never",
    ]  # fmt: skip
    plain = [
        text
        for first in pieces
        for second in pieces
        if without_git(text := f"{PLAIN}{first}\n{second}\n")
    ]
    assert len(plain) > 40
    for text in plain:
        listed = subprocess.run(
            ["git", "config", "--null", "--name-only", "--file", "-", "--list"],
            input=text.encode(),
            capture_output=True,
            check=True,
        ).stdout.decode()
        assert not [
            key for key in listed.split("\0") if planted._SUSPECT.fullmatch(key)
        ]


def test_an_include_is_found_and_not_followed(repository: Repository, tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (repository.path / "config").write_text(f"{PLAIN}[include]\n\tpath = {pipe}\n")
    assert found(repository) == [f"config: include.path = {pipe}"]


def test_a_worktrees_own_configuration_counts(
    repository: Repository, worktree: Worktree
):
    path = Path(worktree.path)
    git("config", "extensions.worktreeConfig", "true", cwd=path)
    git("config", "--worktree", "core.fsmonitor", "evil", cwd=path)
    where = f"worktrees/{path.name}/config.worktree"
    assert found(repository) == [f"{where}: core.fsmonitor = evil"]


def test_a_worktree_that_has_its_configuration_elsewhere_is_found(
    repository: Repository, worktree: Worktree, tmp_path: Path
):
    where = f"worktrees/{Path(worktree.path).name}/commondir"
    (repository.path / where).write_text(f"{tmp_path}\n")
    assert found(repository) == [where]


def test_a_configuration_that_is_no_readable_file_is_found(
    repository: Repository, tmp_path: Path
):
    config = repository.path / "config"
    text = config.read_text()
    shutil.move(config, tmp_path / "config")
    config.symlink_to(tmp_path / "config")
    assert found(repository) == ["config"]
    config.unlink()
    os.mkfifo(config)
    assert found(repository) == ["config"]
    config.unlink()
    config.write_text(f"{text}\n" + "#" * 2_000_000)
    assert found(repository) == ["config"]
    config.write_text("[core\n")
    assert found(repository) == ["config"]


def test_secrets_in_values_are_not_shown(repository: Repository):
    for key, value in {
        "http.extraHeader": "Authorization: Basic SECRET",
        "http.https://git.example/.extraheader": "X: SECRET",
        "http.proxy": "http://user:SECRET@proxy.example",
        "credential.helper": "!echo password=ghp_SECRETSECRETSECRETSECRET",
        "core.pager": "x\x1b[2J" + "y" * 1000,
    }.items():
        git("config", key, value, cwd=repository.path)
    shown = found(repository)
    assert len(shown) == 5
    assert all("SECRET" not in line and len(line) < 300 for line in shown)
    assert all(line.isprintable() for line in shown)


def test_no_more_than_can_be_read_is_returned(repository: Repository):
    keys = "".join(f'[filter "{n}"]\n\tclean = x\n' for n in range(5000))
    (repository.path / "config").write_text(PLAIN + keys)
    *shown, more = planted.look(repository.path)
    assert len(shown) == 50
    # So that those that are shown cannot be approved, and the rest with them.
    assert (more.where, more.key) == ("more than is shown, as in config", "")


def test_nothing_hides_among_more_worktrees_than_are_looked_at(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(planted, "_MOST_WORKTREES", 3)
    for n in range(3):
        (repository.path / f"worktrees/{n}").mkdir(parents=True)
    assert found(repository) == []
    (repository.path / "worktrees/z").mkdir()
    assert found(repository) == ["worktrees"]


def test_no_more_configurations_are_read_than_git_can_in_a_while(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(planted, "_MOST_READ", 2)
    for n in range(4):
        admin = repository.path / f"worktrees/{n}"
        admin.mkdir(parents=True)
        (admin / "config.worktree").write_text("[core]\n\tsparseCheckout = true\n")
    assert found(repository) == []  # the same again costs nothing
    for n in range(4):
        (repository.path / f"worktrees/{n}/config.worktree").write_text(f"# {n}\n")
    assert found(repository) == [
        "more than is shown, as in worktrees/2/config.worktree"
    ]


def test_large_configurations_are_not_kept_in_memory(repository: Repository):
    before = planted._known_suspects.cache_info().currsize
    (repository.path / "config").write_text(PLAIN + "# x\n" * 10_000)
    assert found(repository) == []
    assert planted._known_suspects.cache_info().currsize == before


def test_links_and_pipes_among_the_files_of_a_clone_cannot_be_approved(
    repository: Repository,
):
    os.mkfifo(repository.path / "shallow")
    (repository.path / "refs/heads/acw").symlink_to("/elsewhere")
    assert found(repository) == ["shallow", "refs/heads/acw"]
