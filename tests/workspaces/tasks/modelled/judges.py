"""Judges of contests, good and bad, as ``TASKS_CONTEST_JUDGE`` names them."""

from __future__ import annotations

from collections.abc import Sequence

from workspaces.tasks.judge import ContestTask, Entry, Verdict


def first(
    task: ContestTask, checklist: Sequence[str], entries: Sequence[Entry]
) -> Verdict:
    return Verdict(winner=entries[0].id, reasons="It came first.")


def last(
    task: ContestTask, checklist: Sequence[str], entries: Sequence[Entry]
) -> Verdict:
    return Verdict(winner=entries[-1].id, reasons="It came last.")


def failing(
    task: ContestTask, checklist: Sequence[str], entries: Sequence[Entry]
) -> Verdict:
    raise ValueError("cannot decide")


def foreign(
    task: ContestTask, checklist: Sequence[str], entries: Sequence[Entry]
) -> Verdict:
    return Verdict(winner=2**40, reasons="Not of this contest.")


PATHS = {
    "none": "",
    **{
        judge.__name__: f"{__name__}.{judge.__name__}"
        for judge in (first, last, failing, foreign)
    },
}
DECIDING = ("first", "last")
