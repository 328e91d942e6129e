from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from jobs import doctor
from jobs.doctor import error, ok, probe, warning

MANAGE = Path(__file__).resolve().parents[3] / "manage.py"


@pytest.fixture
def no_probes() -> Iterator[None]:
    before = dict(doctor._probes)
    doctor._probes.clear()
    yield
    doctor._probes.clear()
    doctor._probes.update(before)


def asked(**options: Any) -> str:
    stdout = io.StringIO()
    call_command("doctor", stdout=stdout, **options)
    return stdout.getvalue()


class Full(io.StringIO):
    """A file on a full disk."""

    def write(self, text: str, /) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.usefixtures("no_probes")
def test_where_it_cannot_print_it_says_so_in_one_line():
    with pytest.raises(CommandError, match=r"the system refused: .*No space left"):
        call_command("doctor", stdout=Full())


@pytest.mark.usefixtures("no_probes")
def test_findings_are_printed_with_what_to_do():
    probe("fine")(lambda: [ok("all well")])
    probe("odd")(lambda: [warning("hm\x1b[2J", advice="look")])
    assert asked().splitlines() == [
        "ok       fine  all well",
        "warning  odd   hm\\x1b[2J",
        "               look",
        "",
        "0 errors, 1 warnings",
    ]


@pytest.mark.usefixtures("no_probes")
def test_an_error_is_exit_status_1():
    probe("broken")(lambda: [error("down", advice="start it")])
    with pytest.raises(SystemExit) as ended:
        asked()
    assert ended.value.code == 1


@pytest.mark.usefixtures("no_probes")
def test_json_is_for_scripts():
    probe("odd")(lambda: [warning("hm", advice="look")])
    assert json.loads(asked(json=True)) == {
        "ok": True,
        "findings": [
            {"probe": "odd", "level": "warning", "message": "hm", "advice": "look"}
        ],
    }


@pytest.mark.django_db
def test_the_queues_probes_are_registered_and_none_of_them_breaks():
    findings = dict(doctor.examine())
    assert {
        "database",
        "migrations",
        "settings",
        "clock",
        "vacuum",
        "workers",
        "queues",
        "types",
        "runners",
        "lag",
        "leases",
        "purge",
        "dead",
    } <= set(findings)
    assert doctor.probe_names()[:2] == ["database", "migrations"]
    failed = [f for f in findings.values() if "failed" in f.message]
    assert failed == []


def test_a_database_that_is_down_is_the_first_finding():
    environment = {
        **os.environ,
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none?connect_timeout=2",
    }
    ended = subprocess.run(
        [sys.executable, str(MANAGE), "doctor"],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        check=False,
    )
    lines = ended.stdout.splitlines()
    assert ended.returncode == 1
    assert lines[0].startswith("error    database")
    assert "the database does not answer" in lines[0]
    assert "not checked, because of what database found" in lines[2]
    assert "Traceback" not in ended.stdout + ended.stderr
