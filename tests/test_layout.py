"""Rules of the tree: sizes, names, and a test module for each module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("acw", "jobs", "notify", "workspaces")
LONGEST = 300
FORBIDDEN_NAMES = {"utils", "core", "common", "tasks", "queue", "types", "logging"}
# Names and configuration without behaviour: tested where they are used.
UNTESTED_NAMES = {
    "__init__",
    "apps",
    "base_settings",
    "errors",
    "events",
    "exceptions",
    "signals",
    "urls",
    "wsgi",
}


def modules_of(*directories: str) -> list[Path]:
    found = [
        path.relative_to(ROOT)
        for directory in directories
        for path in (ROOT / directory).rglob("*.py")
        if "migrations" not in path.parts
    ]
    return sorted(found)


MODULES = modules_of(*PACKAGES)
TESTS = modules_of("tests")


def test_the_rules_look_at_the_tree():
    assert Path("acw/settings.py") in MODULES
    assert Path("tests/test_layout.py") in TESTS


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_module_has_at_most_300_lines(module: Path):
    assert len((ROOT / module).read_text().splitlines()) <= LONGEST


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_module_is_not_a_drawer(module: Path):
    assert module.stem not in FORBIDDEN_NAMES


@pytest.mark.parametrize(
    "module", [path for path in MODULES if path.stem not in UNTESTED_NAMES], ids=str
)
def test_a_module_has_a_test_module(module: Path):
    of_its_package = (ROOT / "tests" / module.parts[0]).rglob(f"test_{module.stem}.py")
    assert list(of_its_package)


@pytest.mark.parametrize("module", TESTS, ids=str)
def test_no_test_sleeps(module: Path):
    tree = ast.parse((ROOT / module).read_text())
    sleeps = [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr == "sleep")
        or (isinstance(node, ast.alias) and node.name == "sleep")
    ]
    assert sleeps == []
