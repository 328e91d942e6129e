from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.remote import git
from workspaces.plumbing import git_environment


def configuration(environment: dict[str, str]) -> dict[str, str]:
    count = int(environment["GIT_CONFIG_COUNT"])
    return {
        environment[f"GIT_CONFIG_KEY_{n}"]: environment[f"GIT_CONFIG_VALUE_{n}"]
        for n in range(count)
    }


def test_nothing_of_the_servers_git_is_in_it(monkeypatch: pytest.MonkeyPatch):
    for name in ("GIT_DIR", "GIT_TRACE", "GIT_CONFIG_PARAMETERS", "GIT_EXEC_PATH"):
        monkeypatch.setenv(name, "/evil")
    monkeypatch.setenv("SSH_ASKPASS", "/evil")
    monkeypatch.setenv("GIT_ASKPASS", "/evil")
    assert "/evil" not in git_environment.build([], config={}).values()


def test_configuration_that_is_added_comes_last(tmp_path: Path):
    environment = git_environment.build(
        [tmp_path], config={"filter.a=b.clean": "", "user.name": "A\nB"}
    )
    found = configuration(environment)
    assert found["filter.a=b.clean"] == ""
    assert found["user.name"] == "A\nB"
    assert found["safe.directory"] == str(tmp_path)
    assert found["core.hooksPath"] == "/dev/null"
    assert f"GIT_CONFIG_KEY_{len(found)}" not in environment


def test_objects_and_protocols_can_be_others(tmp_path: Path, settings: Settings):
    settings.ACW_GIT_PROTOCOLS = ["https", "ssh"]
    usual = git_environment.build([], config={})
    assert usual["GIT_ALLOW_PROTOCOL"] == "https:ssh"
    assert "GIT_OBJECT_DIRECTORY" not in usual
    other = git_environment.build([], config={}, objects=tmp_path, protocols=["file"])
    assert other["GIT_ALLOW_PROTOCOL"] == "file"
    assert other["GIT_OBJECT_DIRECTORY"] == str(tmp_path)


def test_a_repository_of_ours_has_the_same_in_a_file(tmp_path: Path):
    file = tmp_path / "config"
    file.write_bytes(git_environment.as_file({"core.bare": "true"}))
    listed = git("config", "--file", str(file), "--null", "--list")
    entries = [entry.split("\n", 1) for entry in listed.split("\0") if entry]
    in_file: dict[str, str] = dict(entries)
    usual = configuration(git_environment.build([], config={"core.bare": "true"}))
    assert in_file == {key.lower(): value for key, value in usual.items()}
    environment = git_environment.build([tmp_path], config={}, configured=True)
    assert configuration(environment) == {"safe.directory": str(tmp_path)}


def test_passwords_of_proxies_are_known_as_secrets(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("https_proxy", "http://user:p%40ssword@proxy.example:3128")
    assert {"p@ssword", "p%40ssword"} <= git_environment.secrets()
    monkeypatch.delenv("https_proxy")
    assert "p@ssword" not in git_environment.secrets()
