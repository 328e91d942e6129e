"""Running the programs of ``tests.workspaces``, in which processes kill themselves on the way."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from django.db import connection

from tests.acceptance.conftest import url_of
from tests.test_layout import ROOT


def run(module: str, words: Iterable[str], data_dir: Path, **variables: str) -> str:
    """Run such a program of ``tests.workspaces`` on the tests' database; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.workspaces.{module}", *words],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "acw.settings",
            "DATABASE_URL": url_of(connection.settings_dict["NAME"]),
            "ACW_DATA_DIR": str(data_dir),
            "ACW_HOST": "test-host",
            "ACW_GIT_PROTOCOLS": "file",
            **variables,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    sys.stderr.write(done.stderr)
    return done.stdout
