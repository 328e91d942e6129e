"""Submissions: handed in, and decided. Called with the task's row locked."""

from __future__ import annotations

from django.db.models import QuerySet

from workspaces.tasks.change import Change
from workspaces.tasks.models import Submission, Task
from workspaces.tasks.outcomes import Refused
from workspaces.tasks.states import Reason

Decision = Submission.Decision


def pending(task: Task) -> list[Submission]:
    """What was handed in and is not decided, with who did."""
    return list(_pending(task))


def undecided(task: Task) -> list[Submission]:
    """The same without what they say: a contest may have thousands of long ones."""
    return list(_pending(task).defer("text", "reference", "reason", "done"))


def _pending(task: Task) -> QuerySet[Submission]:
    rows = Submission.objects.filter(task=task, decision=Decision.PENDING)
    return rows.select_related("agent__user", "agent__owner").order_by(
        "created_at", "pk"
    )


def hand_in(change: Change) -> None:
    """Keep what the agent hands in."""
    details = change.details
    row = Submission.objects.create(
        task=change.task,
        agent=change.agent,
        text=details.text,
        reference=details.reference,
        done=list(details.done),
        decision=Decision.PENDING,
        created_at=change.now,
    )
    change.created_id = row.pk
    change.data["submission_id"] = row.pk


def supersede(change: Change) -> None:
    """An agent's newer entry takes the place of its older one."""
    Submission.objects.filter(
        task=change.task, agent=change.agent, decision=Decision.PENDING
    ).update(decision=Decision.SUPERSEDED, decided_at=change.now)


def accept(change: Change) -> None:
    """Accept what the holder handed in."""
    rows = Submission.objects.filter(task=change.task, decision=Decision.PENDING)
    rows.update(
        decision=Decision.ACCEPTED,
        reason=change.details.reason,
        decided_at=change.now,
    )
    _note_reason(change)


def reject(change: Change, reason: str) -> None:
    """Reject all that is undecided."""
    Submission.objects.filter(task=change.task, decision=Decision.PENDING).update(
        decision=Decision.REJECTED, reason=reason, decided_at=change.now
    )
    if reason:
        change.data["reason"] = reason


def choose(change: Change) -> None:
    """Accept the contest's winner, which must be an entry of it that came in time, and reject the others."""
    chosen = change.details.submission
    if chosen is None:
        raise Refused(Reason.NO_SUCH_SUBMISSION, "no winner was named")
    winner = Submission.objects.filter(
        task=change.task, pk=chosen, decision=Decision.PENDING
    ).first()
    until = change.task.open_until
    if winner is None or (until is not None and winner.created_at >= until):
        raise Refused(
            Reason.NO_SUCH_SUBMISSION,
            f"submission {chosen} is no undecided entry of {change.task} that came in time",
        )
    others = Submission.objects.filter(task=change.task, decision=Decision.PENDING)
    others.exclude(pk=winner.pk).update(
        decision=Decision.REJECTED,
        reason="another entry was chosen",
        decided_at=change.now,
    )
    others.filter(pk=winner.pk).update(
        decision=Decision.ACCEPTED,
        reason=change.details.reason,
        decided_at=change.now,
    )
    change.data["winner"] = str(winner.agent)
    change.data["submission_id"] = winner.pk
    _note_reason(change)


def _note_reason(change: Change) -> None:
    if change.details.reason:
        change.data["reason"] = change.details.reason
