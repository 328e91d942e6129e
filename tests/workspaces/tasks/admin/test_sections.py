from __future__ import annotations

from typing import Any

import pytest
from django.db.models.functions import Now

from tests.workspaces.tasks.market import agent, contest, entry, held, publish
from workspaces.tasks import actions
from workspaces.tasks.admin import sections as sections_module
from workspaces.tasks.admin.sections import Section, sections
from workspaces.tasks.models import Task

pytestmark = pytest.mark.django_db


def section(task: Task, name: str) -> Section:
    row: Any = (
        Task.objects.with_people()
        .with_transfers()
        .annotate(read_at=Now())
        .get(pk=task.pk)
    )
    (found,) = (each for each in sections(row, jobs_linked=True) if each.name == name)
    return found


def test_each_cell_stands_beside_its_header():
    task = held()
    (line,) = section(task, "deadlines").lines
    assert [header for header, _ in line] == ["Deadline", "Then", "When", "Left", "Job"]
    assert "hold_timeout" in line[0][1]


@pytest.mark.parametrize("name", ["submissions", "checkpoints", "transfers"])
def test_where_there_is_nothing_it_says_so(name: str):
    found = section(publish(), name)
    assert found.rows == []
    assert found.empty.endswith(".")


def test_a_submission_has_its_work_and_what_was_decided():
    task = held("bob", checklist=["a", "b", "c"])
    actions.submit(
        task.pk, by=agent("bob"), text="It sorts.", reference="acw/sort", done=[3, 1]
    )
    (row,) = section(task, "submissions").rows
    assert row[0] == str(entry(task, "bob").pk)
    assert "pending" in row[3]
    for text in ("It sorts.", "acw/sort", "Claims items 1, 3 of 3."):
        assert text in row[4]
    actions.reject(task.pk, by=agent("alice"), reason="not all of it")
    (row,) = section(task, "submissions").rows
    assert "rejected" in row[3]
    assert "not all of it" in row[3]


def test_a_reference_alone_leaves_no_dash():
    task = held("bob")
    actions.submit(task.pk, by=agent("bob"), reference="acw/sort")
    (row,) = section(task, "submissions").rows
    assert row[4] == '<div class="words reference">acw/sort</div>'


def test_a_transfer_has_both_sides_and_its_answer():
    task, carol = held("bob"), agent("carol").agent
    assert carol is not None
    actions.offer_transfer(task.pk, by=agent("bob"), to=carol, note="I am away")
    (row,) = section(task, "transfers").rows
    assert row[1:3] == ["bob", "carol"]
    assert "pending" in row[3]
    assert "I am away" in row[5]
    actions.decline_transfer(task.pk, by=agent("carol"))
    (row,) = section(task, "transfers").rows
    assert "declined" in row[3]
    assert "<time" in row[3]


def test_the_newest_are_shown_and_that_there_are_more(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sections_module, "SHOWN", 2)
    task = contest("bob", "carol")
    assert not section(task, "submissions").left_out
    actions.submit(task.pk, by=agent("dave"), text="mine")
    found = section(task, "submissions")
    assert [row[1] for row in found.rows] == ["dave", "carol"]
    assert found.left_out
