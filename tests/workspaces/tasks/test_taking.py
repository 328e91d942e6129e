"""``manage.py task take``, with a worktree of a real clone."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.workspaces.remote import Remote, git
from tests.workspaces.tasks.calling import answer, refusal, refused, run
from tests.workspaces.tasks.market import agent, history, now, publish
from workspaces import clones, fetch, holds, prune, worktrees
from workspaces.exceptions import EmptyRepository
from workspaces.models import Workspace, Worktree
from workspaces.repository import Repository
from workspaces.tasks import actions, taking
from workspaces.tasks.models import Task
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.states import Action, Status

# A worktree is acquired outside of transactions.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def people(db: None) -> None:
    agent("bob")


def test_a_worktree_is_acquired_for_the_agent(workspace: Workspace):
    task = publish(workspace=workspace)
    number, path = (
        run("task", "take", task.pk, "--acquire", "--as", "bob")
        .rstrip("\n")
        .split("\t")
    )
    worktree = Worktree.objects.get()
    assert (str(worktree.pk), worktree.path) == (number, path)
    assert (Path(path) / ".git").exists()
    assert worktree.held_by == "bob"
    # The task's own deadlines say how long.
    assert worktree.lease_expires_at is None
    assert worktree.branch == f"acw/task-{task.pk}"
    assert now(task).worktree == worktree
    assert history(task) == ["publish", "take", "use_worktree"]


def acquired(task: Task, by: str = "bob", *more: str) -> Worktree:
    """The worktree that the agent is given for a task that it takes."""
    said = answer("task", "take", task.pk, "--acquire", *more, "--as", by)
    return Worktree.objects.get(pk=said["worktree"]["id"])


def test_another_task_never_sees_the_work_on_the_first(workspace: Workspace):
    first, second = publish(workspace=workspace), publish(workspace=workspace)
    one = acquired(first)
    (Path(one.path) / "half-done").touch()
    run("task", "give-back", first.pk, "--as", "bob")
    other = acquired(second)
    assert other.pk != one.pk
    assert other.branch == f"acw/task-{second.pk}"
    assert not (Path(other.path) / "half-done").exists()


@pytest.mark.parametrize("branch", [(), ("--branch", "fix-sort")])
def test_the_next_holder_goes_on_where_the_last_one_stopped(
    workspace: Workspace, branch: tuple[str, ...]
):
    task = publish(workspace=workspace)
    one = acquired(task, "bob", *branch)
    (Path(one.path) / "half-done").touch()
    run("task", "give-back", task.pk, "--as", "bob")
    agent("carol")
    again = acquired(task, "carol")
    assert (again.pk, again.held_by) == (one.pk, "carol")
    assert (Path(again.path) / "half-done").exists()


def test_of_several_the_one_that_was_used_last(workspace: Workspace):
    task = publish(workspace=workspace)
    used = []
    for branch in ("one", "two"):
        used.append(acquired(task, "bob", "--branch", branch))
        run("task", "give-back", task.pk, "--as", "bob")
    assert acquired(task) == used[1]
    run("task", "give-back", task.pk, "--as", "bob")
    holds.acquire(workspace, holder="carol", branch="two")
    assert acquired(task) == used[0]


def test_where_the_last_one_is_held_a_new_one_is_made(workspace: Workspace):
    task = publish(workspace=workspace)
    one = acquired(task)
    run("task", "give-back", task.pk, "--as", "bob")
    holds.acquire(workspace, holder="carol", branch=one.branch)
    assert acquired(task).branch == f"acw/task-{task.pk}-2"


def test_somebody_may_be_quicker(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    task = publish(workspace=workspace)
    one = acquired(task)
    run("task", "give-back", task.pk, "--as", "bob")
    again = holds.acquire_again

    def late(*arguments: Any, **others: Any) -> Worktree:
        holds.acquire(workspace, holder="carol", branch=one.branch)
        return again(*arguments, **others)

    monkeypatch.setattr(holds, "acquire_again", late)
    assert acquired(task).branch == f"acw/task-{task.pk}-2"


def test_a_branch_of_that_name_that_others_have_made_is_left_alone(
    workspace: Workspace, remote: Remote
):
    task = publish(workspace=workspace)
    name = f"acw/task-{task.pk}"
    remote.push("pushed", branch=name)
    fetch.fetch_workspace(workspace)
    local = holds.acquire(workspace, holder="carol", branch=f"{name}-2")
    holds.release(local.pk)
    assert acquired(task).branch == f"{name}-3"


def test_the_branch_of_a_pruned_worktree_is_checked_out_again(
    workspace: Workspace, repository: Repository
):
    task = publish(workspace=workspace)
    one = acquired(task)
    run("task", "give-back", task.pk, "--as", "bob")
    path = Path(one.path)
    git("commit", "--quiet", "--allow-empty", "-m", "half done", cwd=path)
    done = git("rev-parse", "HEAD", cwd=path)
    worktrees.discard(repository, path)
    Worktree.objects.all().delete()
    again = acquired(task)
    assert again.branch == one.branch
    assert git("rev-parse", "HEAD", cwd=Path(again.path)) == done


def test_a_pruned_worktree_of_the_task_is_restored_for_its_next_holder(
    workspace: Workspace,
):
    task = publish(workspace=workspace)
    one = acquired(task)
    (Path(one.path) / "half-done").write_text("work")
    run("task", "give-back", task.pk, "--as", "bob")
    prune.archive_worktree(one.pk, actor="ada")
    agent("carol")
    again = acquired(task, "carol")
    assert (again.pk, again.path, again.held_by) == (one.pk, one.path, "carol")
    assert (Path(again.path) / "half-done").read_text() == "work"


def test_one_of_another_workspace_in_which_it_was_worked_on_is_not_taken(
    workspace: Workspace, remote: Remote
):
    task = publish()
    elsewhere = clones.add_workspace("elsewhere", remote.url)
    other = holds.acquire(elsewhere, holder="bob")
    run("task", "take", task.pk, "--worktree", other.pk, "--as", "bob")
    run("task", "give-back", task.pk, "--as", "bob")
    Task.objects.update(workspace=workspace)
    assert acquired(task).workspace == workspace


@pytest.mark.parametrize(
    "branch", ["../evil", "-x", "\udcff", "a b", "HEAD", "origin/main"]
)
def test_a_branch_that_cannot_be_does_not_cost_the_task(
    workspace: Workspace, branch: str
):
    task = publish(workspace=workspace)
    arguments = ("take", task.pk, "--acquire", f"--branch={branch}", "--as", "bob")
    assert refused("task", *arguments, status=2).startswith("branch name ")
    assert refusal("task", *arguments, status=2)["ok"] is False
    assert history(task) == ["publish"]


def test_of_a_branch_and_as_json(workspace: Workspace):
    task = publish(workspace=workspace)
    said = answer(
        "task",
        *("take", task.pk, "--acquire", "--branch", "fix-sort", "--as", "bob"),
    )
    worktree = Worktree.objects.get()
    assert said == {
        "ok": True,
        "task_id": task.pk,
        "action": "take",
        "status": "held",
        "worktree": {
            "id": worktree.pk,
            "path": worktree.path,
            "branch": "fix-sort",
        },
    }


def test_a_worktree_that_the_agent_holds_already(worktree: Worktree):
    task = publish(workspace=worktree.workspace)
    arguments = ("take", task.pk, "--worktree", worktree.pk, "--as", "bob")
    assert "is held by nobody" in refused("task", *arguments)
    assert now(task).status == Status.OPEN
    holds.acquire(worktree.workspace, holder="bob", branch=worktree.branch)
    assert run("task", *arguments) == f"{worktree.pk}\t{worktree.path}\n"
    assert now(task).worktree == worktree


def test_another_is_used_from_then_on_or_none(worktree: Worktree):
    task = publish(workspace=worktree.workspace)
    run("task", "take", task.pk, "--as", "bob")
    holds.acquire(worktree.workspace, holder="bob", branch=worktree.branch)
    run("task", "use-worktree", task.pk, worktree.pk, "--as", "bob")
    assert now(task).worktree == worktree
    run("task", "use-worktree", task.pk, "--none", "--as", "bob")
    assert now(task).worktree is None
    worktree.refresh_from_db()
    assert worktree.held_by is None


def test_where_none_can_be_had_the_task_stays_taken(worktree: Worktree):
    holds.acquire(worktree.workspace, holder="carol", branch=worktree.branch)
    task = publish(workspace=worktree.workspace)
    said = refusal(
        "task",
        *("take", task.pk, "--acquire", "--branch", worktree.branch, "--as", "bob"),
    )
    assert said == {
        "ok": False,
        "reason": said["reason"],
        "code": "worktree_refused",
        "task_id": task.pk,
        "action": "take",
        "status": "held",
    }
    assert "is held by 'carol'" in said["reason"]
    assert f"task use-worktree {task.pk} WORKTREE" in said["reason"]
    assert f"task give-back {task.pk}" in said["reason"]
    assert (str(now(task).holder), now(task).worktree) == ("bob", None)


def test_what_is_acquired_for_a_task_that_is_lost_meanwhile_is_let_go(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    task = publish(workspace=workspace)
    acquire = holds.acquire

    def slow(*arguments: Any, **others: Any) -> Worktree:
        acquired = acquire(*arguments, **others)
        assert actions.give_back(task.pk, by=agent("bob")).ok
        return acquired

    monkeypatch.setattr(holds, "acquire", slow)
    said = refused("task", "take", task.pk, "--acquire", "--as", "bob")
    assert "use_worktree applies to a task that is held" in said
    assert now(task).status == Status.OPEN
    assert Worktree.objects.get().held_by is None


def test_no_worktree_is_made_for_a_task_that_is_not_to_be_had(workspace: Workspace):
    task = publish(workspace=workspace)
    actions.take(task.pk, by=agent("carol"))
    said = refusal("task", "take", task.pk, "--acquire", "--as", "bob")
    assert said["code"] == "wrong_status"
    assert not Worktree.objects.exists()


@pytest.mark.parametrize(
    ("host", "reason"),
    [("test-host", "names no workspace"), ("elsewhere", "lies on host 'elsewhere'")],
)
def test_what_is_known_beforehand_does_not_cost_the_task(
    workspace: Workspace, host: str, reason: str
):
    Workspace.objects.update(host=host)
    workspace.refresh_from_db()
    task = publish(workspace=None if host == "test-host" else workspace)
    assert reason in refused("task", "take", task.pk, "--acquire", "--as", "bob")
    assert now(task).status == Status.OPEN


def test_a_task_that_is_not_there():
    assert refused("task", "take", 7, "--acquire", "--as", "bob") == (
        "there is no task 7"
    )


def test_an_error_while_acquiring_keeps_its_words(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    for error, words in (
        (EmptyRepository("no commit yet"), "no commit yet"),
        (
            OSError(28, "No space left", "/x\n"),
            r"the disk refused: No space left: /x\n",
        ),
    ):
        task = publish(workspace=workspace)
        monkeypatch.setattr(holds, "acquire", Mock(side_effect=error))
        said = refused("task", "take", task.pk, "--acquire", "--as", "bob")
        assert said.startswith(
            f"task {task.pk} was taken, but has no worktree: {words}. "
        )


def test_the_outcome_of_a_take_without_a_worktree():
    task = publish()
    outcome, worktree = taking.take(
        agent("bob"),
        {"id": task.pk, "worktree": None, "acquire": False, "branch": None},
    )
    assert outcome == Outcome(
        ok=True, task_id=task.pk, action=Action.TAKE, status=Status.HELD
    )
    assert worktree is None
