"""``docs/tasks.md`` says what is so: its examples run, and nothing that programs go by is missing from it."""

from __future__ import annotations

import inspect
import re
import subprocess
from pathlib import Path

import pytest
from pytest_django import Settings

from jobs.testing import run_due_jobs
from tests.workspaces.tasks.calling import answer
from tests.workspaces.tasks.market import (
    agent,
    contest,
    entry,
    held,
    now,
    pass_and_work,
    reviewing,
)
from workspaces.tasks import actions, arbitration
from workspaces.tasks.exceptions import InvalidTask, TasksError
from workspaces.tasks.models import Task
from workspaces.tasks.states import Action, Deadline, Reason, Status
from workspaces.tasks.verbs import VERBS
from workspaces.tasks.watches import WORKER_ACTIONS

pytestmark = pytest.mark.django_db

PAGE = (Path(__file__).resolve().parents[3] / "docs/tasks.md").read_text()


def section(title: str) -> str:
    """What stands under this heading, up to the next."""
    return PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def example(language: str, title: str) -> str:
    """The first block of code in a section."""
    found = re.search(rf"```{language}\n(.*?)```", section(title), re.DOTALL)
    assert found
    return found[1]


@pytest.fixture
def sockets(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's own judge and arbiter, as it says to set them up."""
    (tmp_path / "acw_sockets.py").write_text(example("python", "The judge"))
    monkeypatch.syspath_prepend(tmp_path)
    for line in example("sh", "The judge").splitlines():
        name, path = line.split("=")
        setattr(settings, name, path)


def test_the_judge_of_the_example_decides(sockets: None):
    task = contest("bob", checklist=["one", "two"])
    assert actions.submit(task.pk, by=agent("carol"), text="all", done=[1, 2]).ok
    pass_and_work(task.open_for)
    pass_and_work(task.review_for)
    assert now(task).status == Status.ACCEPTED
    assert entry(task, "carol").decision == "accepted"
    assert entry(task, "carol").reason == (
        "carol has done 2 of 2 items of the checklist."
    )


def test_the_arbiter_of_the_example_answers(sockets: None):
    task = reviewing("bob")
    assert actions.reject(task.pk, by=agent("alice"), reason="no").ok
    arbitration.ask(task.pk, by=agent("bob"))
    run_due_jobs()
    said = task.events.get(action="arbitration_opinion").data
    assert said["favours"] == "holder"


def test_the_functions_of_the_example_can_be_called():
    agent("ada"), agent("service:sorter")
    code = compile(example("python", "From Python"), "docs/tasks.md", "exec")
    exec(code, {})  # noqa: S102 (the page's own)
    task = Task.objects.get()
    assert (task.status, str(task.holder)) == ("held", "service:sorter")


def test_the_script_of_the_example_is_a_shells(tmp_path: Path):
    script = tmp_path / "agent.sh"
    script.write_text(example("sh", "For agents"))
    subprocess.run(["sh", "-n", str(script)], check=True)


def test_every_function_is_named_with_its_arguments():
    table = section("From Python")
    for name, function in inspect.getmembers(actions, inspect.isfunction):
        if name.startswith("_") or function.__module__ != actions.__name__:
            continue
        (call,) = re.findall(rf"`{name}\((.*?)\)`", table)
        named = {argument.strip(" =") for argument in call.split(",")}
        parameters = set(inspect.signature(function).parameters)
        assert named == {"id" if one == "task_id" else one for one in parameters}


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("A direct task", [*Status, *Deadline, *WORKER_ACTIONS]),
        ("For agents", Reason),
        ("Who may do what", [verb.name for verb in VERBS]),
        ("The state machine", Action),
    ],
)
def test_nothing_is_missing_from_its_section(title: str, names: list[str]):
    text = section(title)
    assert [name for name in names if f"`{name}`" not in text] == []


def test_the_fields_of_show_are_named():
    task = held("bob")
    actions.checkpoint(task.pk, by=agent("bob"))
    to = agent("carol").agent
    assert to
    actions.offer_transfer(task.pk, by=agent("bob"), to=to)
    said = answer("task", "show", task.pk)
    actions.submit(task.pk, by=agent("bob"), text="done")
    said["submissions"] = answer("task", "show", task.pk)["submissions"]
    names = set(said)
    for rows in ("deadlines", "submissions", "checkpoints", "history"):
        names |= set(said[rows][0])
    names |= {*said["transfer"], *said["deadlines"][0]["job"], *said["next_deadline"]}
    text = section("For agents")
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


def test_no_error_is_named_that_there_is_not():
    raised = set(re.findall(r"`([A-Z][A-Za-z]+)`", section("From Python")))
    known = {TasksError.__name__, InvalidTask.__name__}
    for error in TasksError.__subclasses__():
        known |= {error.__name__, *(each.__name__ for each in error.__subclasses__())}
    assert {name for name in raised if name not in {"Task", "Outcome"}} <= known
