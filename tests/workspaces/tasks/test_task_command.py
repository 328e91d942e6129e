"""``manage.py task``, from a task's publication to its end."""

from __future__ import annotations

import argparse
import io
import uuid
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError
from pytest_django import Settings

from jobs.models import Job
from notify.models import AuditEntry
from tests.workspaces.tasks.calling import answer, refusal, refused, run
from tests.workspaces.tasks.market import (
    agent,
    contest,
    entry,
    held,
    history,
    now,
    pass_and_work,
    publish,
    reviewing,
)
from workspaces.tasks import arbitration, diagram
from workspaces.tasks.job_types import ARBITRATION_OPINION
from workspaces.tasks.management.commands.task import Command
from workspaces.tasks.models import Task
from workspaces.tasks.states import Status

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def people(db: None) -> None:
    for name in ("alice", "bob", "carol"):
        agent(name)


def test_a_direct_task_from_the_first_call_to_the_last():
    number = run(
        "task", "publish", "Sort", "--item", "It sorts", "--as", "alice"
    ).strip()
    assert run("task", "take", number, "--as", "bob") == f"{number}: held\n"
    (report,) = [run("task", "checkpoint", number, "--note", "half", "--as", "bob")]
    assert report.startswith(f"{number}: held (checkpoint ")
    submitted = run(
        "task",
        *("submit", number, "--text", "done", "--done", "1", "--as", "bob"),
    )
    task = Task.objects.get(pk=number)
    assert submitted == f"{number}: reviewing (submission {entry(task, 'bob').pk})\n"
    assert run("task", "reject", number, "--reason", "slow", "--as", "alice") == (
        f"{number}: held\n"
    )
    run("task", "submit", number, "--reference", "acw/sort", "--as", "bob")
    assert run("task", "accept", number, "--as", "alice") == f"{number}: accepted\n"
    assert history(task) == [
        "publish",
        "take",
        "checkpoint",
        "submit",
        "reject",
        "submit",
        "accept",
    ]


def test_a_contest_is_won():
    task = contest("bob", "carol")
    pass_and_work(task.open_for)
    winner = entry(task, "carol").pk
    run("task", "pick", task.pk, winner, "--reason", "faster", "--as", "alice")
    assert entry(task, "carol").decision == "accepted"
    assert entry(task, "carol").reason == "faster"


@pytest.mark.parametrize(
    ("verb", "by", "holder", "state"),
    [
        ("accept-transfer", "carol", "carol", "accepted"),
        ("decline-transfer", "carol", "bob", "declined"),
        ("withdraw-transfer", "bob", "bob", "withdrawn"),
    ],
)
def test_a_task_is_offered_to_another(verb: str, by: str, holder: str, state: str):
    task = held("bob")
    said = answer(
        "task", "offer", task.pk, "--to", "carol", "--note", "please", "--as", "bob"
    )
    transfer = task.transfers.get()
    assert said["id"] == transfer.pk
    assert transfer.note == "please"
    run("task", verb, task.pk, "--as", by)
    transfer.refresh_from_db()
    assert (str(now(task).holder), transfer.status) == (holder, state)


def test_a_task_is_given_back_cancelled_and_reopened():
    task = held("bob")
    run("task", "give-back", task.pk, "--reason", "ill", "--as", "bob")
    assert now(task).status == Status.OPEN
    run("task", "cancel", task.pk, "--reason", "no more", "--as", "alice")
    assert now(task).status == Status.CANCELLED
    run("task", "reopen", task.pk, "--open-for", "90m", "--as", "alice")
    reopened = now(task)
    assert reopened.status == Status.OPEN
    assert reopened.open_for.total_seconds() == 5400


def test_what_applied_is_said_as_json():
    task = publish()
    assert answer("task", "take", task.pk, "--as", "bob") == {
        "ok": True,
        "task_id": task.pk,
        "action": "take",
        "status": "held",
    }
    published = answer("task", "publish", "Next", "--as", "bob")
    assert published == {
        "ok": True,
        "task_id": Task.objects.latest("pk").pk,
        "action": "publish",
        "status": "open",
    }


def test_what_did_not_apply_is_status_1_with_the_reason():
    task = held("bob")
    assert refusal("task", "take", task.pk, "--as", "carol") == {
        "ok": False,
        "reason": "take applies to a task that is open, and this one is held",
        "code": "wrong_status",
        "task_id": task.pk,
        "action": "take",
        "status": "held",
    }
    assert refused("task", "accept", task.pk, "--as", "carol") == (
        "accept applies to a task that is reviewing, and this one is held"
    )
    assert history(task) == ["publish", "take"]


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        (["take", "99", "--as", "bob"], 1, "there is no task 99"),
        (["show", str(10**17)], 1, f"there is no task {10**17}"),
        (["take", "99", "--as", "ghost"], 1, "there is no user 'ghost'"),
        (["take", "99", "--as", "service:x"], 1, "`manage.py agent add x` makes it"),
        (["take", "99", "--as", "\udcff"], 1, "there is no agent '\\udcff'"),
        (["take", "99", "--as", "bob", "--worktree", "7"], 1, "no worktree 7"),
        (["publish", "t", "--workspace", "w", "--as", "bob"], 1, "no workspace 'w'"),
        (["publish", "t", "--workspace", "\udcff", "--as", "bob"], 1, "'\\udcff'"),
        (["publish", "t", "--as", ""], 2, "--as: it names nobody"),
        (["publish", "", "--as", "bob"], 2, "title: must not be empty"),
        (["publish", "t", "--hold-for", "0", "--as", "bob"], 2, "hold_for: "),
        (["publish", "\udcff", "--as", "bob"], 2, "title: contains a lone surrogate"),
        (["take", "99"], 2, "--as AGENT, or set ACW_AGENT"),
        (["take", "99", "--branch", "b", "--as", "bob"], 2, "--branch goes with"),
        (["list", "--mine"], 2, "--as AGENT, or set ACW_AGENT"),
    ],
)
def test_an_error_is_one_line_or_one_json_document(
    arguments: list[str], status: int, reason: str
):
    assert reason in refused("task", *arguments, status=status)
    assert reason in refusal("task", *arguments, status=status)["reason"]
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["take"],
        ["take", "seven", "--as", "bob"],
        ["take", "-1", "--as", "bob"],
        ["take", "1" * 19, "--as", "bob"],
        ["publish", "t", "--hold-for", "soon", "--as", "bob"],
        ["publish", "t", "--template", "race", "--as", "bob"],
        ["submit", "1", "--done", "one", "--as", "bob"],
        ["reject", "1", "--as", "bob"],
        ["pick", "1", "--as", "bob"],
        ["use-worktree", "1", "--as", "bob"],
        ["use-worktree", "1", "2", "--none", "--as", "bob"],
        ["take", "1", "--worktree", "1", "--acquire", "--as", "bob"],
        ["list", "--limit", "0"],
        ["list", "--status", "lost"],
    ],
)
def test_a_call_that_cannot_be_read_does_nothing(arguments: list[str]):
    with pytest.raises(CommandError):
        run("task", *arguments)
    assert not Task.objects.exists()


def test_the_setting_says_who_acts_where_the_call_does_not(settings: Settings):
    settings.ACW_AGENT = "bob"
    task = publish()
    run("task", "take", task.pk)
    assert str(now(task).holder) == "bob"
    assert "for its holder" in refused("task", "give-back", task.pk, "--as", "carol")


def test_an_operator_acts_in_the_publishers_place_and_is_audited():
    task = reviewing("bob")
    without = refused("task", "accept", task.pk, "--as", "carol", "--operator")
    assert (
        without == "--operator: carol does not have the permission tasks.operate_task"
    )
    assert not AuditEntry.objects.exists()

    operate = Permission.objects.get(codename="operate_task")
    User.objects.get(username="carol").user_permissions.add(operate)
    run("task", "accept", task.pk, "--as", "carol", "--operator")
    assert now(task).status == Status.ACCEPTED
    assert task.events.latest("pk").actor == "carol (operator)"
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target) == ("task.accept", f"task:{task.pk}")
    assert entry.actor.startswith("command line (")
    assert entry.data == {"as": "carol", "status": "accepted"}


def operator(name: str) -> None:
    operate = Permission.objects.get(codename="operate_task")
    User.objects.get(username=name).user_permissions.add(operate)


def test_the_audit_keeps_an_operators_reason_without_credentials(
    monkeypatch: pytest.MonkeyPatch,
):
    operator("carol")
    task = reviewing("bob")
    monkeypatch.setattr("sys.stdin", io.StringIO("see https://u:SECRET@host/x"))
    run("task", *("reject", task.pk, "--reason", "-", "--as", "carol", "--operator"))
    assert AuditEntry.objects.get().data == {
        "as": "carol",
        "status": "held",
        "reason": "see https://u:***@host/x",
    }


def test_the_audit_keeps_the_winner_that_an_operator_picked():
    operator("carol")
    task = contest("bob")
    pass_and_work(task.open_for)
    winner = entry(task, "bob").pk
    run("task", "pick", task.pk, winner, "--as", "carol", "--operator")
    assert AuditEntry.objects.get().data == {
        "as": "carol",
        "status": "accepted",
        "submission_id": winner,
    }


def test_an_operators_question_to_the_arbiter_is_audited(settings: Settings):
    settings.TASKS_ARBITER = "somewhere.arbiter"
    operator("carol")
    task = reviewing("bob")
    run("task", "reject", task.pk, "--reason", "slow", "--as", "alice")
    run("task", "arbitrate", task.pk, "--as", "alice")
    assert not AuditEntry.objects.exists()
    job = run(
        "task",
        *("arbitrate", task.pk, "--words", "unfair", "--as", "carol", "--operator"),
    ).strip()
    kept = AuditEntry.objects.get()
    assert (kept.action, kept.target) == ("task.arbitrate", f"task:{task.pk}")
    assert kept.actor.startswith("command line (")
    assert kept.data == {"as": "carol", "words": "unfair", "job_id": job}


def test_without_its_audit_no_question_is_asked(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    settings.TASKS_ARBITER = "somewhere.arbiter"
    operator("carol")
    task = reviewing("bob")
    run("task", "reject", task.pk, "--reason", "slow", "--as", "alice")

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no audit")

    monkeypatch.setattr("notify.audit.record", fail)
    with pytest.raises(RuntimeError):
        run("task", "arbitrate", task.pk, "--as", "carol", "--operator")
    assert not Job.objects.filter(type=ARBITRATION_OPINION).exists()


def test_what_an_operator_did_in_vain_is_not_audited():
    task = held("bob")
    operate = Permission.objects.get(codename="operate_task")
    User.objects.get(username="carol").user_permissions.add(operate)
    assert "reviewing" in refused(
        "task", "accept", task.pk, "--as", "carol", "--operator"
    )
    assert not AuditEntry.objects.exists()


def test_an_opinion_is_asked_for(monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[int, dict[str, object]]] = []
    job = uuid.uuid4()

    def ask(task_id: int, **others: object) -> uuid.UUID:
        asked.append((task_id, others))
        return job

    monkeypatch.setattr(arbitration, "ask", ask)
    assert run("task", "arbitrate", 7, "--as", "bob") == f"{job}\n"
    assert answer(
        "task",
        *("arbitrate", 7, "--submission", 3, "--words", "unfair", "--as", "bob"),
    ) == {
        "ok": True,
        "task_id": 7,
        "job_id": str(job),
    }
    by = agent("bob")
    assert asked == [
        (7, {"by": by, "submission": None, "words": ""}),
        (7, {"by": by, "submission": 3, "words": "unfair"}),
    ]


def test_an_opinion_that_cannot_be_had_is_said(settings: Settings):
    settings.TASKS_ARBITER = ""
    task = reviewing("bob")
    run("task", "reject", task.pk, "--reason", "slow", "--as", "alice")
    assert "TASKS_ARBITER" in refused("task", "arbitrate", task.pk, "--as", "bob")
    assert (
        "TASKS_ARBITER"
        in refusal("task", "arbitrate", task.pk, "--as", "bob")["reason"]
    )


def test_tasks_are_listed():
    assert run("task", "list") == "no tasks\n"
    first, second = publish("alice"), held("bob")
    lines = run("task", "list").splitlines()
    assert lines[0].split()[:4] == ["ID", "STATUS", "TEMPLATE", "TITLE"]
    assert [line.split()[:2] for line in lines[1:]] == [
        [str(second.pk), "held"],
        [str(first.pk), "open"],
    ]
    assert [row["id"] for row in answer("task", "list", "--status", "open")] == [
        first.pk
    ]
    assert [row["id"] for row in answer("task", "list", "--limit", 1)] == [second.pk]
    assert [row["id"] for row in answer("task", "list", "--oldest")] == [
        first.pk,
        second.pk,
    ]
    more = "there are more; --limit N shows more"
    assert run("task", "list", "--limit", 1).splitlines()[2:] == [more]
    assert more not in run("task", "list", "--limit", 2)
    assert answer("task", "list", "--template", "contest") == []
    assert [row["id"] for row in answer("task", "list", "--mine", "--as", "bob")] == [
        second.pk
    ]


def test_a_task_is_shown():
    task = held("bob")
    printed = run("task", "show", task.pk)
    assert "hold_timeout" in printed
    assert "Sort the lists" in printed
    assert answer("task", "show", task.pk)["holder"] == "bob"


def test_the_diagram_is_printed_and_written(tmp_path: Path):
    assert run("task", "diagram") == diagram.drawn() + "\n"
    page = tmp_path / "page.md"
    page.write_text(f"before\n{diagram.BEGIN}\nold\n{diagram.END}\nafter\n")
    assert run("task", "diagram", "--write", page) == f"{page}: drawn anew\n"
    assert diagram.drawn() in page.read_text()
    assert run("task", "diagram", "--write", page) == f"{page}: as it was\n"
    page.write_text("no place\n")
    assert "it must have" in refused("task", "diagram", "--write", page)
    assert "No such file" in refused("task", "diagram", "--write", tmp_path / "none")


def test_every_verb_explains_itself():
    parser = Command().create_parser("manage.py", "task")
    (verbs,) = [
        action
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    assert set(verbs.choices) == {
        *("publish", "take", "use-worktree", "checkpoint", "submit", "give-back"),
        *("accept", "reject", "pick", "cancel", "reopen", "offer", "accept-transfer"),
        *("decline-transfer", "withdraw-transfer", "arbitrate", "list", "show"),
        "diagram",
    }
    for name, verb in verbs.choices.items():
        for option in verb._actions:
            assert option.help or not option.option_strings, f"{name} {option.dest}"
        if name != "diagram":
            assert "--json" in verb.format_help()
        if name not in {"diagram", "show"}:
            assert "--as AGENT" in verb.format_help()
