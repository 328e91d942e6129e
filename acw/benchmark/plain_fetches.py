"""The floor of fetches: the same `git fetch` for each clone, from a plain pool of threads.

A program of its own, without Django: `python -m acw.benchmark.plain_fetches URL THREADS WORKSPACES`, the directory that holds the
workspaces'.
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

# As in workspaces.repository, whose fetch this is.
_OPTIONS = (
    "--quiet",
    "--prune",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
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
    """Fetch into one clone; raises BenchmarkError with what git said."""
    done = subprocess.run(  # noqa: S603 - an argument list, no shell
        ["git", f"--git-dir={clone}", "fetch", *_OPTIONS, "--", url, _REFSPEC],  # noqa: S607 - git is found by PATH, as the product does
        cwd="/",
        env=_ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise BenchmarkError(f"git fetch failed in {clone}: {said}")


def main(url: str, threads: int, workspaces: Path) -> None:
    """Fetch into the clone of each of the workspaces."""
    clones = sorted(workspaces.glob("*/repository.git"))

    def work(number: int) -> None:
        for clone in clones[number::threads]:
            fetch(clone, url)

    began = gate.wait()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    gate.report({"began": began, "ended": time.monotonic()})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
