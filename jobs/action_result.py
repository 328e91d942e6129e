"""What came of an operator's action, as values and as a sentence."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.utils import timezone

_NAMED = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Skip:
    """One that was left as it is, and why; ``holder`` is the live job that is in its way."""

    target: uuid.UUID | str
    reason: str
    holder: uuid.UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A running job whose worker is to bring it to an end; ``since`` where it had been asked before."""

    target: uuid.UUID | str
    worker: str
    since: dt.datetime | None = None


@dataclass(kw_only=True, slots=True)
class Result:
    """What a verb did. ``str()`` tells a person: ``31 retried, 2 skipped: a live job has the key (#…)``.

    ``asked`` are not done yet. ``unfinished`` means that the time limit came first: the same call again does more.
    """

    participle: str
    done: list[uuid.UUID | str] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    unfinished: bool = False

    def __str__(self) -> str:
        by_reason: dict[str, list[Skip]] = defaultdict(list)
        for skip in self.skipped:
            by_reason[skip.reason].append(skip)
        parts = [f"{len(self.done):,} {self.participle}"]
        if self.asked and not self.done:
            parts = []
        parts += _describe_asked([asked for asked in self.asked if not asked.since])
        parts += _describe_asked([asked for asked in self.asked if asked.since])
        parts += [_describe(reason, skips) for reason, skips in by_reason.items()]
        text = ", ".join(parts)
        return f"{text}; there are more, do it again" if self.unfinished else text


def _describe(reason: str, skips: list[Skip]) -> str:
    holders = [f"#{skip.holder}" for skip in skips if skip.holder]
    if not holders:
        return f"{len(skips):,} skipped: {reason}"
    return f"{len(skips):,} skipped: {reason} ({_named(holders)})"


def _describe_asked(asked: Sequence[Asked]) -> list[str]:
    if not asked:
        return []
    earlier = [each.since for each in asked if each.since]
    when = f" already, at {_clock(min(earlier))}" if earlier else ""
    they = "it is" if len(asked) == 1 else "they are"
    workers = _named(each.worker for each in asked)
    return [f"{len(asked):,} asked to stop{when}: {they} running on {workers}"]


def _named(names: Iterable[str]) -> str:
    """The first few of them, each once."""
    different = list(dict.fromkeys(names))
    more = ", …" if len(different) > _NAMED else ""
    return ", ".join(different[:_NAMED]) + more


def _clock(time: dt.datetime) -> str:
    """The time of day, with the date where it is another day's."""
    local = timezone.localtime(time)
    today = local.date() == timezone.localdate()
    return local.strftime("%H:%M %Z" if today else "%H:%M %Z on %Y-%m-%d")
