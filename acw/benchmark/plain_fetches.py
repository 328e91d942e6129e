"""The floor of fetches: the same `git fetch` for each clone, from a plain pool of threads.

A program of its own, without Django: `python -m acw.benchmark.plain_fetches PAIRS THREADS`, a file with a line for each
clone: its path, a tab, the URL of its remote.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from acw.benchmark import gate
from acw.benchmark.errors import BenchmarkError

# As in workspaces.plumbing.control, whose fetch this is.
_CONFIGURATION = {
    "core.alternateRefsCommand": "true",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.fsync": "committed,-reference",
    "core.quotePath": "false",
    "credential.helper": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
}
_OPTIONS = (
    "--quiet",
    "--prune",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
    "--upload-pack=git-upload-pack",
)
_REFSPEC = "+refs/heads/*:refs/remotes/origin/*"
_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": os.devnull,
    "LC_ALL": "C",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
}


def fetch(clone: Path, url: str) -> None:
    """Fetch into one clone's control directory; raises BenchmarkError with what git said."""
    config = {**_CONFIGURATION, "safe.directory": str(clone.with_name("control.git"))}
    done = subprocess.run(  # noqa: S603 - an argument list, no shell
        [  # noqa: S607 - git is found by PATH, as the product does
            "git",
            *(word for pair in config.items() for word in ("-c", "=".join(pair))),
            f"--git-dir={clone.with_name('control.git')}",
            "fetch",
            *_OPTIONS,
            "--",
            url,
            _REFSPEC,
        ],
        cwd="/",
        env={**_ENVIRONMENT, "GIT_OBJECT_DIRECTORY": str(clone / "objects")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        # A busy machine may give each session its share.
        start_new_session=True,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise BenchmarkError(f"git fetch failed in {clone}: {said}")


def main(pairs: Path, threads: int) -> None:
    """Fetch into each of the clones."""
    clones = [line.split("\t") for line in pairs.read_text().splitlines()]

    def work(number: int) -> None:
        for clone, url in clones[number::threads]:
            fetch(Path(clone), url)

    began = gate.wait()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    gate.report({"began": began, "ended": time.monotonic()})


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
