"""Rules of the tree: sizes, names, and a test module for each module."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("acw", "jobs", "notify", "workspaces")
LONGEST = 300
FORBIDDEN_NAMES = {"utils", "core", "common", "tasks", "queue", "types", "logging"}
# Names and configuration without behaviour: tested where they are used.
UNTESTED_NAMES = {
    "__init__",
    "apps",
    "base_settings",
    "workspace_settings",
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


def test_a_module_has_at_most_300_lines():
    long = {
        str(module): lines
        for module in MODULES
        if (lines := len((ROOT / module).read_text().splitlines())) > LONGEST
    }
    assert long == {}


def test_a_module_is_not_a_drawer():
    drawers = [str(module) for module in MODULES if module.stem in FORBIDDEN_NAMES]
    assert drawers == []


def test_a_module_has_a_test_module():
    tests = {(path.parts[1], path.stem) for path in TESTS if len(path.parts) > 2}
    untested = [
        str(module)
        for module in MODULES
        if module.stem not in UNTESTED_NAMES
        and (module.parts[0], f"test_{module.stem}") not in tests
    ]
    assert untested == []


def test_no_test_sleeps():
    sleeps = [
        f"{module}:{node.lineno}"
        for module in TESTS
        for node in ast.walk(ast.parse((ROOT / module).read_text()))
        if (isinstance(node, ast.Attribute) and node.attr == "sleep")
        or (isinstance(node, ast.alias) and node.name == "sleep")
    ]
    assert sleeps == []
