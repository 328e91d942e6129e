"""What came of an operator's action, as values and as a sentence."""

from __future__ import annotations

import uuid
from collections import defaultdict
from dataclasses import dataclass, field

_HOLDERS_NAMED = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Skip:
    """One that was left as it is, and why; ``holder`` is the live job that is in its way."""

    target: uuid.UUID | str
    reason: str
    holder: uuid.UUID | None = None


@dataclass(kw_only=True, slots=True)
class Result:
    """What a verb did. ``str()`` tells a person: ``31 retried, 2 skipped: a live job has the key (#…)``.

    ``unfinished`` means that the time limit came first: the same call again does more.
    """

    participle: str
    done: list[uuid.UUID | str] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    unfinished: bool = False

    def __str__(self) -> str:
        by_reason: dict[str, list[Skip]] = defaultdict(list)
        for skip in self.skipped:
            by_reason[skip.reason].append(skip)
        parts = [f"{len(self.done):,} {self.participle}"]
        parts += [_describe(reason, skips) for reason, skips in by_reason.items()]
        text = ", ".join(parts)
        return f"{text}; there are more, do it again" if self.unfinished else text


def _describe(reason: str, skips: list[Skip]) -> str:
    holders = list(dict.fromkeys(f"#{skip.holder}" for skip in skips if skip.holder))
    if not holders:
        return f"{len(skips):,} skipped: {reason}"
    named = ", ".join(holders[:_HOLDERS_NAMED])
    more = ", …" if len(holders) > _HOLDERS_NAMED else ""
    return f"{len(skips):,} skipped: {reason} ({named}{more})"
