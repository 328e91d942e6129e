"""Which of the files that a repository ignores are no loss: those that tools make again."""

from __future__ import annotations

from pathlib import PurePosixPath

_DIRECTORIES = frozenset(
    {
        ".cache",
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

_FILES = frozenset({".DS_Store", ".coverage"})

_SELF_IGNORING = frozenset(
    {".mypy_cache", ".nox", ".pytest_cache", ".ruff_cache", ".tox", ".venv"}
)
"""Directories whose tools put a ``.gitignore`` of ``*`` in them: git lists what is in them instead."""

_DIRECTORY_SUFFIXES = (".egg-info",)
_FILE_SUFFIXES = (".pyc", ".pyo", ".o", ".class")


def is_named(name: str, *, is_directory: bool) -> bool:
    """Whether tools make what has this name again. A file or a link ``build`` is somebody's own, and so is a directory ``a.o``."""
    if is_directory:
        return name in _DIRECTORIES or name.endswith(_DIRECTORY_SUFFIXES)
    return name in _FILES or name.endswith(_FILE_SUFFIXES)


def is_recreatable(path: str) -> bool:
    """Whether what git lists as ignored (``a/b/``: a whole directory) is no loss.

    A directory of such a name may hold other files as well, so one that git lists only in part is
    no reason: ``build/.env`` may lie beside a ``build/run.sh`` that is committed.
    """
    *above, name = PurePosixPath(path).parts
    return is_named(
        name, is_directory=path.endswith("/")
    ) or not _SELF_IGNORING.isdisjoint(above)
