from __future__ import annotations

import pytest

from workspaces.tasks.models import Task, TaskEvent
from workspaces.tasks.states import (
    ENDED,
    LIVE,
    Action,
    Deadline,
    Status,
    Template,
)


def test_a_task_is_live_or_has_ended():
    assert {*LIVE, *ENDED} == set(Status)
    assert not {*LIVE} & {*ENDED}
    assert ENDED == (
        Status.ACCEPTED,
        Status.REJECTED,
        Status.EXPIRED,
        Status.CLOSED,
        Status.CANCELLED,
    )


@pytest.mark.parametrize(
    ("model", "column", "words"),
    [
        (Task, "status", Status),
        (Task, "template", Template),
        (TaskEvent, "action", Action),
        (TaskEvent, "source", Status),
        (TaskEvent, "target", Status),
    ],
)
def test_every_word_fits_into_its_column(model: type, column: str, words: type):
    longest = max(len(word) for word in words)  # type: ignore[attr-defined]
    assert longest <= model._meta.get_field(column).max_length  # type: ignore[attr-defined]


def test_a_deadline_is_named_as_its_column():
    columns = {field.name for field in Task._meta.get_fields()}
    assert set(Deadline) - columns == {Deadline.TRANSFER_UNTIL}
