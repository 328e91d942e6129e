"""What a process loads depends on what it has loaded before, so each case is a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.core import checks

from jobs.admin import JobAdmin

ROOT = Path(__file__).resolve().parents[2]
LOADED = """
import json, sys
import django
django.setup()
from django.core import checks
from jobs.management.commands.runjobs import Command
{code}
print(json.dumps([name for name in sys.argv[1:] if name in sys.modules]))
"""


def loaded(code: str, *names: str) -> list[str]:
    """Those of the modules that a process has loaded once its apps are ready and it has run the code."""
    finished = subprocess.run(
        [sys.executable, "-c", LOADED.format(code=code), *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names_found: list[str] = json.loads(finished.stdout)
    return names_found


def test_a_worker_loads_neither_pages_nor_what_only_deliveries_need():
    """Each would be held by every worker of every host for as long as it runs."""
    wanted = [
        "acw.urls",
        "jobs.admin",
        "notify.forms",
        "workspaces.admin",
        "cryptography",
        "requests",
        "notify.handlers",
        "workspaces.handlers",
    ]
    assert loaded("Command().check(tags=Command.requires_system_checks)", *wanted) == [
        "notify.handlers",
        "workspaces.handlers",
    ]


@pytest.mark.parametrize("module", ["acw.urls", "acw.wsgi"])
@pytest.mark.parametrize("app", ["jobs", "notify", "workspaces"])
def test_what_serves_pages_fills_the_console_before_the_first_request(
    module: str, app: str
):
    assert loaded(f"import {module}", f"{app}.admin") == [f"{app}.admin"]


@pytest.mark.parametrize("app", ["jobs", "notify", "workspaces"])
def test_the_checks_of_the_admin_fill_it_first(app: str):
    code = "checks.run_checks(tags=[checks.Tags.admin])"
    assert loaded(code, "acw.urls", f"{app}.admin") == [f"{app}.admin"]


def test_the_checks_of_the_admin_are_made_and_made_once(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(JobAdmin, "list_display", ["nothing_of_that_name"])
    found = checks.run_checks(tags=[checks.Tags.admin])
    assert [message.id for message in found] == ["admin.E108"]
