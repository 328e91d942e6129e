"""What an agent can plant in a repository so that git runs it: each with a command with which git alone does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.workspaces.remote import WHO
from tests.workspaces.witness import plant

SSH_URL = "ssh://git@git.example/project"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where things are planted: a repository's ``git_dir``, beside it a directory for files, and its remote."""

    git_dir: Path
    aside: Path
    remote: str

    def configure(self, key: str, value: str) -> None:
        command = ["git", "config", "--file", str(self.git_dir / "config")]
        subprocess.run([*command, "--add", key, value], check=True)


@dataclass(frozen=True, kw_only=True)
class Vector:
    """``plant`` is given the place and the program; ``fire`` are commands of git in a checkout, any of which may fail."""

    name: str
    plant: Callable[[Place, str], None]
    fire: Sequence[str]

    def fires(self, checkout: Path, *, remote: str, url_401: str) -> None:
        """Do with git alone what runs it."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.devnull,
            "EDITOR": "true",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_PAGER_IN_USE": "1",
        }
        for command in self.fire:
            named = command.replace("URL401", url_401).replace("REMOTE", remote)
            subprocess.run(
                ["git", *WHO, *named.split()],
                cwd=checkout,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )


def _key(key: str, form: str = "{program}") -> Callable[[Place, str], None]:
    def configure(place: Place, program: str) -> None:
        named = key.replace("REMOTE", place.remote)
        place.configure(named, form.format(program=program))

    return configure


def _hook(name: str) -> Callable[[Place, str], None]:
    def add(place: Place, program: str) -> None:
        plant(place.git_dir / "hooks" / name, program)

    return add


def _driver(key: str, attribute: str) -> Callable[[Place, str], None]:
    def add(place: Place, program: str) -> None:
        place.configure(key, program)
        attributes = place.git_dir / "info" / "attributes"
        attributes.parent.mkdir(exist_ok=True)
        with attributes.open("a") as file:
            file.write(f"* {attribute}\n")

    return add


def _include(key: str) -> Callable[[Place, str], None]:
    def add(place: Place, program: str) -> None:
        more = place.aside / "more"
        more.write_text(f"[core]\n\tfsmonitor = {program}\n")
        place.configure(key, str(more))

    return add


def _alternates(place: Place, program: str) -> None:
    place.configure("core.alternateRefsCommand", program)


def _ext(place: Place, program: str) -> None:
    place.configure("protocol.ext.allow", "always")
    place.configure(f"url.ext::{program} .insteadOf", "ext-project")


def _hooks_path(place: Place, program: str) -> None:
    for name in ("post-checkout", "reference-transaction"):
        plant(place.aside / "hooks" / name, program)
    place.configure("core.hooksPath", str(place.aside / "hooks"))


VECTORS = (
    Vector(
        name="post-checkout",
        plant=_hook("post-checkout"),
        fire=["checkout --detach"],
    ),
    Vector(
        name="reference-transaction",
        plant=_hook("reference-transaction"),
        fire=["fetch origin +refs/heads/*:refs/x/*"],
    ),
    Vector(name="hooks-path", plant=_hooks_path, fire=["checkout --detach"]),
    Vector(name="fsmonitor", plant=_key("core.fsmonitor"), fire=["status"]),
    Vector(
        name="ssh-command",
        plant=_key("core.sshCommand"),
        fire=[f"ls-remote {SSH_URL}"],
    ),
    Vector(
        name="git-proxy",
        plant=_key("core.gitProxy"),
        fire=["ls-remote git://git.example/x"],
    ),
    Vector(
        name="upload-pack",
        plant=_key("remote.origin.uploadpack"),
        fire=["fetch origin"],
    ),
    Vector(
        name="upload-pack-of-url",
        plant=_key("remote.REMOTE.uploadpack"),
        fire=["fetch REMOTE"],
    ),
    Vector(name="ask-pass", plant=_key("core.askPass"), fire=["ls-remote URL401"]),
    Vector(
        name="credential-helper",
        plant=_key("credential.helper", "!{program}"),
        fire=["ls-remote URL401"],
    ),
    Vector(
        name="filter-clean",
        plant=_driver("filter.a.clean", "filter=a"),
        fire=["add --renormalize ."],
    ),
    Vector(
        name="filter-smudge",
        plant=_driver("filter.b.smudge", "filter=b"),
        fire=["checkout-index --force --all"],
    ),
    Vector(
        name="filter-process",
        plant=_driver("filter.c.process", "filter=c"),
        fire=["checkout-index --force --all"],
    ),
    Vector(name="ext", plant=_ext, fire=["ls-remote ext-project"]),
    Vector(name="include", plant=_include("include.path"), fire=["status"]),
    Vector(
        name="include-if",
        plant=_include("includeIf.gitdir:/**.path"),
        fire=["status"],
    ),
    Vector(
        name="alternate-refs",
        plant=_alternates,
        fire=["fetch REMOTE new"],
    ),
    Vector(
        name="diff-external", plant=_key("diff.external"), fire=["diff HEAD~1 HEAD"]
    ),
    Vector(
        name="textconv",
        plant=_driver("diff.d.textconv", "diff=d"),
        fire=["diff HEAD~1 HEAD"],
    ),
    Vector(
        name="merge-driver",
        plant=_driver("merge.e.driver", "merge=e"),
        fire=["merge conflict"],
    ),
    Vector(
        name="gpg",
        plant=_key("gpg.program"),
        fire=["commit --allow-empty --gpg-sign -m x"],
    ),
    Vector(
        name="editor",
        plant=_key("core.editor"),
        fire=["commit --allow-empty --amend"],
    ),
    Vector(
        name="pager", plant=_key("core.pager"), fire=["grep --open-files-in-pager ours"]
    ),
    Vector(
        name="alias",
        plant=_key("alias.st", "!{program}"),
        fire=["st"],
    ),
)
