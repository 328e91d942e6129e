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
"""Names of files, and of directories that git ignores as a whole."""

_SELF_IGNORING = frozenset(
    {".mypy_cache", ".nox", ".pytest_cache", ".ruff_cache", ".tox", ".venv"}
)
"""Directories whose tools put a ``.gitignore`` of ``*`` in them: git lists what is in them instead."""

SUFFIXES = (".pyc", ".pyo", ".egg-info", ".o", ".class")


def is_recreatable(path: str) -> bool:
    """Whether what git lists as ignored (``a/b/``: a whole directory) is no loss.

    A directory of such a name may hold other files as well, so one that git lists only in part is
    no reason: ``build/.env`` may lie beside a ``build/run.sh`` that is committed.
    """
    *above, name = PurePosixPath(path).parts
    return (
        name in NAMES or name.endswith(SUFFIXES) or not _SELF_IGNORING.isdisjoint(above)
    )
