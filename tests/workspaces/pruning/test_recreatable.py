from __future__ import annotations

import pytest

from workspaces.pruning.recreatable import is_recreatable


@pytest.mark.parametrize(
    "path",
    [
        "node_modules/",
        "web/node_modules/",
        ".venv/",
        "src/pkg/__pycache__/",
        "pkg/module.pyc",
        "acw.egg-info/",
        "target/",
        ".venv/bin/",
        ".pytest_cache/README.md",
        ".DS_Store",
    ],
)
def test_what_tools_make_again_is_no_loss(path: str):
    assert is_recreatable(path)


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "notes.txt",
        "data/",
        "db.sqlite3",
        "builds/",
        "x.pyc.bak",
        "out/",
        "build/.env",
        "target/debug/",
        "dist/notes/",
        "venv/.env",
        "build",
        "web/target",
        "node_modules",
        "dump.o/",
        "Main.class/",
    ],
)
def test_everything_else_is(path: str):
    assert not is_recreatable(path)
