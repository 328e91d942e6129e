from __future__ import annotations

import datetime as dt
import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.cpu import seconds_of
from tests.workspaces.forge import answering
from tests.workspaces.remote import Remote, git
from tests.workspaces.witness import plant
from workspaces import failures
from workspaces import git as runner
from workspaces.exceptions import (
    CloneMissing,
    ConfigTampered,
    GitError,
    GitFailed,
    GitMissing,
    GitOutputTooLarge,
    OutsideDataDirectory,
    RefusedUrl,
)
from workspaces.failures import Failure, classify
from workspaces.models import Workspace
from workspaces.repository import Repository

SSH_URL = "ssh://git@git.example/project"

# What ssh and servers say, which cannot be had from them here.
SAID = {
    "git@git.example: Permission denied (publickey).": Failure.AUTH,
    "fatal: could not read Username for 'https://x': terminal prompts disabled": Failure.AUTH,
    "remote: HTTP Basic: Access denied": Failure.AUTH,
    "Received disconnect from ::1 port 22:2: Too many authentication failures": Failure.AUTH,
    "remote: Permission to a/b.git denied to c.": Failure.AUTH,
    "FATAL: R any a b DENIED by fallthru\n(or you mis-spelled the reponame)": Failure.AUTH,
    "No ED25519 host key is known for git.example and you have requested strict checking.\n"
    "Host key verification failed.\nfatal: Could not read from remote repository.": Failure.HOST_KEY,
    "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @": Failure.HOST_KEY,
    "fatal: unable to access 'https://x/': SSL certificate problem: certificate has expired": Failure.HOST_KEY,
    "fatal: unable to access 'https://x/': server certificate verification failed. CAfile: none": Failure.HOST_KEY,
    "ERROR: Repository not found.\nfatal: Could not read from remote repository.": Failure.NOT_FOUND,
    "remote: The project you were looking for could not be found or you don't have permission to view it.": Failure.NOT_FOUND,
    "fatal: repository 'https://git.example/x/' not found": Failure.NOT_FOUND,
    "Gitea: Repository does not exist or you do not have access": Failure.NOT_FOUND,
    "ssh: Could not resolve hostname git.example: Name or service not known": Failure.NETWORK,
    "ssh: connect to host git.example port 22: No route to host": Failure.NETWORK,
    "fatal: unable to access 'https://x/': Could not resolve host: x": Failure.NETWORK,
    "fatal: unable to access 'https://x/': The requested URL returned error: 503": Failure.NETWORK,
    "error: RPC failed; curl 18 transfer closed\nfatal: early EOF\nfatal: fetch-pack: invalid index-pack output": Failure.NETWORK,
    "ssh: connect to host git.example port 22: Connection timed out": Failure.TIMEOUT,
    "fatal: unable to access 'https://x/': Operation too slow. Less than 1000 bytes/sec": Failure.TIMEOUT,
    "error: file write error: No space left on device\nfatal: unable to write loose object file": Failure.DISK_FULL,
    "fatal: write error: Disk quota exceeded": Failure.DISK_FULL,
    "error: inflate: data stream error (unknown compression method)\nerror: unable to unpack 1 header": Failure.CORRUPT,
    "error: packfile ./objects/pack/pack-1.pack does not match index": Failure.CORRUPT,
    "fatal: bad object refs/remotes/origin/main\nerror: x did not send all necessary objects": Failure.CORRUPT,
    "fatal: unexpected line in /srv/x/repository.git/packed-refs: zz refs/heads/a": Failure.CORRUPT,
    "fatal: unterminated line in /srv/x/repository.git/packed-refs: x": Failure.CORRUPT,
    "fatal: not a git repository: '/srv/x/repository.git'": Failure.CORRUPT,
    "fatal: multi-pack-index version 0 not recognized": Failure.CORRUPT,
    "error: index-pack died of signal 25\nfatal: fetch-pack: invalid index-pack output": Failure.REFUSED,
    "fatal: detected dubious ownership in repository at '/x'": Failure.REFUSED,
    "": Failure.NETWORK,
}


def test_every_class_fits_the_column_of_the_row():
    longest = Workspace._meta.get_field("fetch_problem").max_length
    assert longest is not None
    assert all(len(failure) <= longest for failure in Failure)


def test_what_git_and_ssh_say_has_a_class():
    classes = {said: classify(GitFailed("fetch", 128, stderr=said)) for said in SAID}
    assert classes == SAID


def test_other_errors_have_a_class_too():
    assert classify(RefusedUrl("x")) is Failure.REFUSED
    assert classify(OutsideDataDirectory("x")) is Failure.REFUSED
    assert classify(CloneMissing("x")) is Failure.REFUSED
    assert classify(GitOutputTooLarge("fetch", "x")) is Failure.REFUSED
    assert classify(ConfigTampered("x")) is Failure.CONFIG_TAMPERED
    assert classify(GitMissing("fetch", "x")) is Failure.NETWORK
    assert classify(OSError(errno.ENOSPC, "x")) is Failure.DISK_FULL
    assert classify(OSError(errno.EDQUOT, "x")) is Failure.DISK_FULL
    assert classify(OSError(errno.EIO, "x")) is Failure.CORRUPT
    assert classify(OSError("x")) is Failure.NETWORK
    assert classify(ValueError("x")) is Failure.NETWORK


class Trouble:
    """Real trouble, and what a fetch makes of it."""

    def __init__(self, directory: Path, remote: Remote, programs: Path) -> None:
        self.directory = directory
        self.remote = remote
        self.programs = programs

    def clone(self) -> Repository:
        self.directory.mkdir(parents=True)
        repository = Repository(self.directory)
        repository.create(self.remote.url)
        repository.fetch(self.remote.url, timeout=None, stop=None)
        return repository

    def locked(self) -> None:
        with answering(401) as url:
            self.fetch(url)

    def forbidden(self) -> None:
        with answering(403) as url:
            self.fetch(url)

    def not_there(self) -> None:
        with answering(404) as url:
            self.fetch(url)

    def no_path(self) -> None:
        self.fetch(f"{self.remote.url}.gone")

    def broken_server(self) -> None:
        with answering(500) as url:
            self.fetch(url)

    def nobody_listens(self) -> None:
        self.fetch("http://127.0.0.1:1/x")

    def unknown_host(self) -> None:
        plant(
            self.programs / "ssh", "echo Host key verification failed. >&2", "exit 255"
        )
        self.fetch(SSH_URL)

    def hangs(self) -> None:
        plant(self.programs / "ssh", "exec sleep 1000")
        self.fetch(SSH_URL, timeout=dt.timedelta(seconds=0.3))

    def not_allowed(self) -> None:
        self.fetch("ftp://git.example/x")

    def option(self) -> None:
        self.fetch("ssh://-oProxyCommand=x/y")

    def locked_reference(self) -> None:
        clone = self.clone()
        self.remote.push("new", content=str(self.directory))
        (clone.path / "refs/remotes/origin/main.lock").touch()
        clone.fetch(self.remote.url, timeout=None, stop=None)

    def locked_packed_references(self) -> None:
        clone = self.clone()
        clone.run(["pack-refs", "--all"])
        (clone.path / "packed-refs.lock").touch()
        clone.run(["update-ref", "-d", "refs/remotes/origin/main"])

    def locked_index(self) -> None:
        work = self.directory / "work"
        git("init", "--quiet", str(work))
        (work / ".git/index.lock").touch()
        runner.run(["add", "."], cwd=work)

    def empty_object(self) -> None:
        clone = self.clone()
        tip = git("rev-parse", "origin/main", cwd=clone.path)
        loose = clone.path / "objects" / tip[:2] / tip[2:]
        loose.chmod(0o644)
        loose.write_bytes(b"")
        self.remote.push("new", content=str(self.directory))
        clone.fetch(self.remote.url, timeout=None, stop=None)

    def truncated_object(self) -> None:
        clone = self.clone()
        tip = git("rev-parse", "origin/main", cwd=clone.path)
        loose = clone.path / "objects" / tip[:2] / tip[2:]
        loose.chmod(0o644)
        loose.write_bytes(loose.read_bytes()[:20])
        self.remote.push("new", content=str(self.directory))
        clone.fetch(self.remote.url, timeout=None, stop=None)

    def truncated_pack(self) -> None:
        clone = self.clone()
        git("gc", "--quiet", cwd=clone.path)
        (pack,) = (clone.path / "objects/pack").glob("*.pack")
        pack.chmod(0o644)
        pack.write_bytes(pack.read_bytes()[:-30])
        self.remote.push("new", content=str(self.directory))
        clone.fetch(self.remote.url, timeout=None, stop=None)

    def fetch(self, url: str, *, timeout: dt.timedelta | None = None) -> None:
        (self.directory / "repository.git" / "objects").mkdir(parents=True)
        Repository(self.directory).fetch(url, timeout=timeout, stop=None)


REAL: dict[Callable[[Trouble], None], Failure] = {
    Trouble.locked: Failure.AUTH,
    Trouble.forbidden: Failure.AUTH,
    Trouble.not_there: Failure.NOT_FOUND,
    Trouble.no_path: Failure.NOT_FOUND,
    Trouble.broken_server: Failure.NETWORK,
    Trouble.nobody_listens: Failure.NETWORK,
    Trouble.unknown_host: Failure.HOST_KEY,
    Trouble.hangs: Failure.TIMEOUT,
    Trouble.not_allowed: Failure.REFUSED,
    Trouble.option: Failure.REFUSED,
    Trouble.locked_reference: Failure.LOCK,
    Trouble.locked_packed_references: Failure.LOCK,
    Trouble.locked_index: Failure.LOCK,
    Trouble.empty_object: Failure.CORRUPT,
    Trouble.truncated_object: Failure.CORRUPT,
    Trouble.truncated_pack: Failure.CORRUPT,
}


def test_real_trouble_has_its_class(
    tmp_path: Path, remote: Remote, programs: Path, settings: Settings
):
    settings.ACW_GIT_PROTOCOLS = ["ssh", "http", "file"]
    classes = {}
    for number, make in enumerate(REAL):
        trouble = Trouble(tmp_path / str(number), remote, programs)
        with pytest.raises(GitError) as failure:
            make(trouble)
        classes[make] = classify(failure.value)
    assert classes == REAL


def test_no_text_costs_more_than_it_is_long():
    pieces = ["x", "'", "packfile ", "object file ", "transport '", "fatal: ", "\n", "strange x", "Permission to "]  # fmt: skip
    errors = [
        GitFailed("fetch", 128, stderr=piece * (96 * 1024 // len(piece)))
        for piece in pieces
    ]

    def classify_all() -> None:
        for error in errors:
            classify(error)
            failures.tells_of_damage(error.stderr)

    assert seconds_of(classify_all) < 5
