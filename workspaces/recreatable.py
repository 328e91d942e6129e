"""Which of the files that a repository ignores are no loss: those that tools make again."""

from __future__ import annotations

from pathlib import PurePosixPath

NAMES = frozenset(
    {
        ".DS_Store",
        ".cache",
        ".coverage",
        ".eggs",
        ".gradle",
        ".mypy_cache",
        ".next",
        ".nox",
        ".nuxt",
        ".parcel-cache",
        ".pytest_cache",
        ".ruff_cache",
        ".terraform",
        ".tox",
        ".turbo",
        ".venv",
        "__pycache__",
        "build",
        "dist",
        "htmlcov",
        "node_modules",
        "target",
        "venv",
    }
)
"""Names of files and directories; what lies in such a directory counts as well."""

SUFFIXES = (".pyc", ".pyo", ".egg-info", ".o", ".class")


def is_recreatable(path: str) -> bool:
    """Whether the ignored file or directory (``a/b/``: a directory) is no loss."""
    parts = PurePosixPath(path).parts
    return not NAMES.isdisjoint(parts) or parts[-1].endswith(SUFFIXES)
