"""Settings are made once in a process, so each case is a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from acw import env

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = {
    "DATABASE_URL": "postgresql://acw:hunter2@db.example/acw",
    "SECRET_KEY": "hunter2-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFG",
    "ACW_ENCRYPTION_KEYS": Fernet.generate_key().decode(),
    "ALLOWED_HOSTS": "acw.example.com",
}
# Their defaults are others in the embedded mode, or are the host's.
DIFFERS_BY_MODE = {"ACW_HTTPS", "ACW_HOST", "ALLOWED_HOSTS"}
SHOW = """
import json, sys
from acw import settings
print(json.dumps({name: getattr(settings, name) for name in sys.argv[1:]}, default=str))
"""


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python with no variable of ACW's set but these."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in env.VARIABLES and not name.startswith(env.PREFIXES)
    }
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**kept, "ACW_ENV_FILE": "", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def show(*names: str, **variables: str) -> dict[str, Any]:
    finished = run("-c", SHOW, *names, **variables)
    assert finished.returncode == 0, finished.stderr
    shown: dict[str, Any] = json.loads(finished.stdout)
    return shown


def test_the_embedded_mode_needs_nothing_and_keeps_what_it_makes(tmp_path: Path):
    names = ("SECRET_KEY", "ACW_ENCRYPTION_KEYS", "ACW_GIT_PROTOCOLS", "ALLOWED_HOSTS")
    first = show(*names, ACW_STATE_DIR=str(tmp_path))
    assert first == show(*names, ACW_STATE_DIR=str(tmp_path))
    assert len(first["SECRET_KEY"]) >= 50
    assert len(first["ACW_ENCRYPTION_KEYS"]) == 1
    assert first["ACW_GIT_PROTOCOLS"] == ["https", "ssh", "file"]
    assert first["ALLOWED_HOSTS"] == ["localhost", "127.0.0.1", "[::1]"]
    # Reading settings starts no server and makes no cluster.
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "encryption_key",
        "secret_key",
    ]


def test_with_a_database_url_nothing_is_made_and_the_wheel_is_not_needed(
    tmp_path: Path,
):
    state = tmp_path / "state"
    shown = show(
        "EMBEDDED",
        "ACW_GIT_PROTOCOLS",
        "NOTIFY_WEBHOOK_ALLOW_NETWORKS",
        **PRODUCTION,
        ACW_STATE_DIR=str(state),
    )
    assert shown == {
        "EMBEDDED": False,
        "ACW_GIT_PROTOCOLS": ["https", "ssh"],
        "NOTIFY_WEBHOOK_ALLOW_NETWORKS": [],
    }
    assert not state.exists()


def test_each_variable_is_the_setting_of_its_name():
    variables = set(env.VARIABLES) - {"DATABASE_URL", "ACW_ENV_FILE"}
    from acw import settings

    assert variables >= {"JOBS_WORKERS", "NOTIFY_WEBHOOK_URL", "ACW_DATA_DIR", "DEBUG"}
    assert [name for name in sorted(variables) if not hasattr(settings, name)] == []


def test_defaults_are_the_documented_ones():
    defaults = {name: variable.default for name, variable in env.VARIABLES.items()}
    expected = {
        "JOBS_ENABLED": "true",
        "JOBS_WORKERS": "2",
        "JOBS_SHUTDOWN_GRACE": "30s",
        "JOBS_WORKSPACE_FETCH_INTERVAL": "5m",
        "JOBS_WORKTREE_PRUNE_INTERVAL": "24h",
        "JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD": "720h",
        "JOBS_WORKTREE_PRUNE_WARNING_LEAD": "72h",
        "JOBS_ATTACHMENT_CLEANUP_RETENTION": "720h",
        "JOBS_JOB_REAPER_INTERVAL": "1m",
        "JOBS_JOB_REAPER_LEASE_TIMEOUT": "5m",
        "JOBS_JOB_PURGE_COMPLETED_RETENTION": "168h",
        "JOBS_JOB_PURGE_DEAD_RETENTION": "720h",
        "JOBS_TASK_REPORT_ENABLED": "true",
        "JOBS_TASK_REPORT_INTERVAL": "24h",
        "JOBS_TASK_RECONCILE_ENABLED": "true",
        "JOBS_TASK_RECONCILE_INTERVAL": "15m",
        "ACW_AGENT": "",
        "TASKS_OPEN_FOR": "168h",
        "TASKS_HOLD_FOR": "24h",
        "TASKS_CHECKPOINT_EVERY": "0s",
        "TASKS_FINAL_MISS": "2",
        "TASKS_CHECKPOINT_WARNING_LEAD": "15m",
        "TASKS_REVIEW_FOR": "72h",
        "TASKS_REVIEW_WARNING_LEAD": "24h",
        "TASKS_TRANSFER_FOR": "1h",
        "TASKS_RETURNS_ALLOWED": "3",
        "TASKS_CONTEST_JUDGE": "",
        "TASKS_ARBITER": "",
        "TASKS_JUDGE_TIMEOUT": "10m",
        "NOTIFY_WEBHOOK_ENABLED": "false",
        "NOTIFY_WEBHOOK_TIMEOUT": "10s",
        "NOTIFY_WEBHOOK_MAX_ATTEMPTS": "6",
    }
    assert {name: defaults[name] for name in expected} == expected


def test_a_relative_data_directory_is_below_the_project():
    shown = show("ACW_DATA_DIR", **PRODUCTION, ACW_DATA_DIR="elsewhere/data")
    assert shown["ACW_DATA_DIR"] == str(ROOT / "elsewhere" / "data")


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"JOBS_WORKERS": "two"}, "JOBS_WORKERS cannot be 'two'"),
        ({"JOBS_WORKERS": "1001"}, "JOBS_WORKERS cannot be '1001'"),
        ({"JOBS_MAX_PAYLOAD": "16383"}, "JOBS_MAX_PAYLOAD cannot be '16383'"),
        ({"JOBS_STALL_AFTER": "25h"}, "JOBS_STALL_AFTER cannot be '25h'"),
        ({"JOBS_SHUTDOWN_GRACE": "30"}, "JOBS_SHUTDOWN_GRACE cannot be '30'"),
        ({"JOBS_POLL_INTERVAL": "1x"}, "unknown unit 'x'"),
        ({"JOBS_ENABLED": "maybe"}, "JOBS_ENABLED cannot be 'maybe'"),
        ({"TASKS_HOLD_FOR": "0s"}, "TASKS_HOLD_FOR cannot be '0s'"),
        ({"TASKS_FINAL_MISS": "0"}, "TASKS_FINAL_MISS cannot be '0'"),
        *(
            ({name: "87600h1s"}, f"{name} cannot be '87600h1s'")
            for name in (
                "TASKS_OPEN_FOR",
                "TASKS_HOLD_FOR",
                "TASKS_REVIEW_FOR",
                "TASKS_CHECKPOINT_EVERY",
            )
        ),
        *(
            ({name: "10001"}, f"{name} cannot be '10001'")
            for name in ("TASKS_FINAL_MISS", "TASKS_RETURNS_ALLOWED")
        ),
        ({"TASKS_RETURNS_ALLOWED": "-1"}, "TASKS_RETURNS_ALLOWED cannot be '-1'"),
        ({"TASKS_TRANSFER_FOR": "soon"}, "TASKS_TRANSFER_FOR cannot be 'soon'"),
        ({"SECRET_KEY": ""}, "SECRET_KEY is unset"),
        ({"ACW_ENCRYPTION_KEYS": ""}, "ACW_ENCRYPTION_KEYS is unset"),
        ({"ACW_ENCRYPTION_KEYS": "hunter2"}, "key 1 of 1"),
        ({"DATABASE_URL": "mysql://u:hunter2@h/d"}, "DATABASE_URL cannot be"),
        (
            {"JOBS_WORKTREE_PRUNE_WARNING_LEAD": "720h"},
            "must be shorter than JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD",
        ),
        ({"JOBS_BACKOFF_BASE": "2h"}, "must be no longer than JOBS_BACKOFF_MAX"),
    ],
)
def test_a_bad_value_stops_the_start_with_one_line(
    variables: dict[str, str], said: str
):
    finished = run("manage.py", "check", **{**PRODUCTION, **variables})
    assert finished.returncode == 1
    assert finished.stdout == ""
    assert said in finished.stderr
    assert finished.stderr.count("\n") == 1
    assert "hunter2" not in finished.stderr


def test_production_passes_djangos_deployment_check():
    finished = run(
        "manage.py", "check", "--deploy", "--fail-level", "WARNING", **PRODUCTION
    )
    assert finished.returncode == 0, finished.stderr


def test_a_slip_in_a_variables_name_is_warned_about():
    finished = run("manage.py", "check", **PRODUCTION, JOBS_WORKER="4")
    assert "acw.W001" in finished.stderr
    assert "Did you mean JOBS_WORKERS?" in finished.stderr


@pytest.mark.parametrize(
    ("variables", "https"),
    [
        (PRODUCTION, True),
        ({**PRODUCTION, "ACW_HTTPS": "false"}, False),
        ({**PRODUCTION, "DEBUG": "true"}, False),
        ({}, False),
    ],
)
def test_https_is_demanded_in_production(
    variables: dict[str, str], https: bool, tmp_path: Path
):
    names = ("SECURE_SSL_REDIRECT", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE")
    shown = show(*names, **{"ACW_STATE_DIR": str(tmp_path), **variables})
    assert shown == dict.fromkeys(names, https)


def test_the_example_file_shows_every_variable_and_its_default():
    lines = (ROOT / ".env.example").read_text().splitlines()
    shown = dict(
        line[1:].split("=", 1) for line in lines if re.match(r"#[A-Z_]+=", line)
    )
    assert set(shown) == set(env.VARIABLES)
    for name in shown:
        variable = env.VARIABLES[name]
        if variable.default and name not in DIFFERS_BY_MODE:
            assert shown[name] == variable.default
