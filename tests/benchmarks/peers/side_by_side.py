"""Runs the shared peers' benchmark with ACW and the newer Python queues in it. See README.md.

    side_by_side.py run --only acw,pg-boss --match kept --runs 5
    side_by_side.py report

The arguments are those of the harness's own `bench.py`.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

import entries

CHECKOUT = Path(__file__).resolve().parents[3]
USUAL_HARNESS = CHECKOUT.parent / "shared" / "bench" / "peers"


def harness() -> ModuleType:
    """The shared benchmark, loaded from BENCH_HARNESS or from its place beside the checkout."""
    folder = Path(os.environ.get("BENCH_HARNESS") or USUAL_HARNESS).resolve()
    if not (folder / "bench.py").is_file():
        sys.exit(
            f"the shared benchmark is not in {folder}: set BENCH_HARNESS to the folder that holds its bench.py"
        )
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("bench")
    except ModuleNotFoundError as error:
        sys.exit(
            f"{sys.executable} lacks {error.name}, which the shared benchmark needs: start run.sh, which installs it"
        )


def main() -> int:
    bench = harness()
    # The peers' scripts run in another folder, and look for their environments here.
    os.environ["BENCH_WORK"] = str(bench.WORK)
    entries.add_to(bench)
    return int(bench.main() or 0)


if __name__ == "__main__":
    sys.exit(main())
