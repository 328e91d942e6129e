"""The documentation cannot fall behind: what operators and developers go by is looked for in it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

from django.apps import apps
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand

from acw import env
from acw.events import LogEvent as AcwEvent
from jobs import doctor, registry
from jobs.events import LogEvent as JobsEvent
from notify.events import LogEvent as NotifyEvent
from notify.topics import topics
from workspaces.events import LogEvent as WorkspacesEvent
from workspaces.tasks.events import LogEvent as TasksEvent

ROOT = Path(__file__).resolve().parents[1]
OUR_APPS = ("acw", "jobs", "notify", "workspaces", "tasks")
OPERATIONS = (ROOT / "docs/operations.md").read_text()
ALL = "\n".join(page.read_text() for page in sorted((ROOT / "docs").glob("*.md")))


def in_code(name: str, text: str) -> bool:
    """Whether the name stands in the text as code, by itself or at the beginning of more."""
    return re.search(rf"`{re.escape(name)}(?![\w.])", text) is not None


def missing(names: Iterable[str], text: str) -> list[str]:
    return [name for name in names if not in_code(name, text)]


def test_every_environment_variable_is_documented() -> None:
    assert missing(env.VARIABLES, OPERATIONS) == []


def test_every_environment_variable_is_in_the_example() -> None:
    example = (ROOT / ".env.example").read_text()
    absent = {
        name
        for name in env.VARIABLES
        if not re.search(rf"^#? ?{name}=", example, re.MULTILINE)
    }
    assert absent <= {"ACW_ENV_FILE"}


def test_no_variable_is_documented_that_does_not_exist() -> None:
    documented = set(re.findall(r"`((?:ACW|JOBS|NOTIFY|TASKS)_[A-Z_]+)`", ALL))
    unknown = documented - set(env.VARIABLES)
    assert {n for n in unknown if not n.startswith("JOBS_INVOICE_REMINDERS")} == set()


def test_every_log_event_is_documented() -> None:
    events = [*AcwEvent, *JobsEvent, *NotifyEvent, *WorkspacesEvent, *TasksEvent]
    assert missing(events, OPERATIONS) == []


def test_every_topic_is_documented() -> None:
    assert missing(topics(), ALL) == []


def test_every_job_type_is_documented() -> None:
    assert missing(registry.job_types(), OPERATIONS) == []


def test_every_runner_is_documented() -> None:
    assert missing(registry.runners(), OPERATIONS) == []


def test_every_table_is_documented() -> None:
    tables = [
        model._meta.db_table
        for app in OUR_APPS
        for model in apps.get_app_config(app).get_models()
        if not model._meta.proxy
    ]
    assert missing(tables, OPERATIONS) == []


def our_commands() -> list[str]:
    modules = {apps.get_app_config(label).name for label in OUR_APPS}
    return sorted(name for name, app in get_commands().items() if app in modules)


def test_every_command_is_documented_with_its_verbs() -> None:
    section = OPERATIONS.partition("\n## Commands\n")[2].partition("\n## ")[0]
    undocumented = []
    for name in our_commands():
        (row,) = (
            line for line in section.splitlines() if re.match(rf"\| `{name}[` ]", line)
        )
        command = load_command_class(get_commands()[name], name)
        assert isinstance(command, BaseCommand)
        for action in command.create_parser("manage.py", name)._actions:
            if isinstance(action, argparse._SubParsersAction):
                undocumented += [
                    f"{name} {verb}"
                    for verb in action.choices
                    if not re.search(rf"\b{verb}\b", row)
                ]
    assert undocumented == []


def test_the_readme_has_both_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make run" in readme
    assert "make test" in readme


def test_every_link_between_pages_leads_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_probe_of_the_doctor_is_documented() -> None:
    troubleshooting = OPERATIONS.partition("\n## Troubleshooting\n")[2]
    assert missing(doctor.probe_names(), troubleshooting) == []
