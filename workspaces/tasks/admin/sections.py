"""The rows that belong to a task, as the tables on its page: the newest of each, with who wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from jobs.display import first_line
from jobs.markup import NOTHING
from jobs.models import LIVE
from workspaces.tasks.admin.pieces import (
    agent,
    badge,
    distance,
    moment,
    shown,
    words,
)
from workspaces.tasks.models import Checkpoint, Submission, Task, Transfer
from workspaces.tasks.outlook import expected

SHOWN = 100
MISSING = "missing"

Cell = SafeString | str
_PEOPLE = ("agent__user", "agent__owner")


@dataclass(frozen=True, kw_only=True)
class Section:
    """A table under a heading; ``empty`` is said in its place where there is nothing."""

    name: str
    title: str
    headers: Sequence[str]
    empty: str
    rows: list[list[Cell]] = field(default_factory=list)
    left_out: bool = False

    @property
    def lines(self) -> list[list[tuple[str, Cell]]]:
        """Each cell with its header, which stands beside it where the page is narrow."""
        return [list(zip(self.headers, row, strict=True)) for row in self.rows]


def sections(task: Any, *, jobs_linked: bool) -> list[Section]:
    """Of a task that was read with its transfers and with ``read_at``, the database's time; linked to the jobs or not."""
    return [
        _deadlines(task, jobs_linked=jobs_linked),
        _written(
            Section(
                name="submissions",
                title="Submissions",
                headers=("Number", "Agent", "Handed in", "Decision", "Work"),
                empty="Nothing was handed in.",
            ),
            Submission.objects.select_related(*_PEOPLE).filter(task=task.pk),
            lambda row: _submission(row, task),
        ),
        _written(
            Section(
                name="checkpoints",
                title="Checkpoints",
                headers=("When", "Agent", "Note"),
                empty="Nothing was reported.",
            ),
            Checkpoint.objects.select_related(*_PEOPLE).filter(task=task.pk),
            lambda row: [moment(row.created_at), agent(row.agent), words(row.note)],
        ),
        _written(
            Section(
                name="transfers",
                title="Transfers",
                headers=("Offered", "From", "To", "State", "Until", "Note"),
                empty="It was offered to nobody.",
            ),
            Transfer.objects.select_related(
                "from_agent__user", "to_agent__user"
            ).filter(task=task.pk),
            _transfer,
        ),
    ]


def _written(
    section: Section, rows: QuerySet[Any], cells: Callable[[Any], list[Cell]]
) -> Section:
    found = list(rows.order_by("-pk")[: SHOWN + 1])
    return Section(
        name=section.name,
        title=section.title,
        headers=section.headers,
        empty=section.empty,
        rows=[cells(row) for row in found[:SHOWN]],
        left_out=len(found) > SHOWN,
    )


def _deadlines(task: Any, *, jobs_linked: bool) -> Section:
    return Section(
        name="deadlines",
        title="Pending deadlines",
        headers=("Deadline", "Then", "When", "Left", "Job"),
        empty="None: nothing happens by itself.",
        rows=[
            [
                format_html("<code>{}</code>", each.action),
                each.says,
                moment(each.at),
                distance(each.at, task.read_at),
                _job(each.job, linked=jobs_linked),
            ]
            for each in expected(task, now=task.read_at)
        ],
    )


def _job(job: Mapping[str, Any] | None, *, linked: bool) -> SafeString:
    """The job's state, the way to it, and why nothing will come of it or what it failed of."""
    if job is None:
        return format_html("{}{}", badge(MISSING), _lines(_what_is_wrong(job)))
    said = badge(job["status"])
    if linked:
        url = reverse("admin:jobs_job_change", args=[job["id"]])
        # The end tells jobs apart: an id begins with its time.
        said = format_html(
            '{} <a href="{}" title="{}">job …{}</a>',
            said,
            url,
            job["id"],
            str(job["id"])[-12:],
        )
    return format_html("{}{}", said, _lines(_what_is_wrong(job)))


def _what_is_wrong(job: Mapping[str, Any] | None) -> Iterable[str]:
    if job is None:
        yield "no job is there for this deadline"
        return
    if job["status"] not in LIVE:
        yield f"its job is {job['status']}, and no other is there for this deadline"
    if job["last_error"]:
        yield f"last error: {first_line(shown(job['last_error']), 300)}"


def _submission(row: Submission, task: Task) -> list[Cell]:
    decided: Cell = badge(row.decision)
    if row.decided_at is not None:
        decided = format_html("{} {}", decided, moment(row.decided_at))
    if row.reason:
        decided = format_html("{}{}", decided, words(row.reason))
    return [
        str(row.pk),
        agent(row.agent),
        moment(row.created_at),
        decided,
        format_html(
            "{}{}{}",
            format_html('<div class="words reference">{}</div>', shown(row.reference))
            if row.reference
            else "",
            words(row.text) if row.text or not row.reference else "",
            _lines(_claims(row, task)),
        ),
    ]


def _claims(row: Submission, task: Task) -> Iterable[str]:
    if row.done:
        items = ", ".join(map(str, row.done))
        yield f"Claims items {items} of {len(task.checklist)}."


def _transfer(row: Transfer) -> list[Cell]:
    state: Cell = badge(row.status)
    if row.answered_at is not None:
        state = format_html("{} {}", state, moment(row.answered_at))
    return [
        moment(row.created_at),
        agent(row.from_agent),
        agent(row.to_agent),
        state,
        moment(row.expires_at),
        words(row.note) if row.note else NOTHING,
    ]


def _lines(texts: Iterable[str]) -> SafeString:
    return format_html_join(
        "", '<div class="aside">{}</div>', ((text,) for text in texts)
    )
