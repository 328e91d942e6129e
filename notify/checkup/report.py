"""What a check-up has found: a finding for each step, as values that can be shown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Step(StrEnum):
    """What is looked at, in this order."""

    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    REDIRECT = "redirect"
    LATENCY = "latency"
    EVENT = "event"
    FORGED = "forged signature"
    OLD = "old timestamp"
    ALTERED = "altered body"
    DUPLICATE = "duplicate"


class Grade(StrEnum):
    """How it stands."""

    PASSED = "ok"
    WARNING = "warning"
    """It works, and could be better."""
    UNKNOWN = "unknown"
    """It could not be tried, or the answer says neither yes nor no."""
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What was found at one step, and what to do about it, in words that can be shown."""

    step: Step
    grade: Grade
    message: str
    advice: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """The findings, one for each step, in order."""

    endpoint: str
    target: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether the receiver was seen to do all that it must."""
        return all(
            finding.grade in (Grade.PASSED, Grade.WARNING) for finding in self.findings
        )

    @property
    def summary(self) -> str:
        """One sentence: the worst of it first."""
        failed = self._messages(Grade.FAILED)
        if failed:
            return f"{self.endpoint}: {'; '.join(failed)}."
        unknown = [f.step for f in self.findings if f.grade is Grade.UNKNOWN]
        if unknown:
            return f"{self.endpoint}: not known: {', '.join(unknown)}."
        warnings = self._messages(Grade.WARNING)
        if warnings:
            return f"{self.endpoint} does what it must; {'; '.join(warnings)}."
        return f"{self.endpoint} takes what is genuine, and refuses the rest."

    def as_json(self) -> dict[str, Any]:
        """For scripts, and for the audit."""
        return {
            "ok": self.ok,
            "endpoint": self.endpoint,
            "target": self.target,
            "findings": [
                {
                    "step": finding.step.value,
                    "grade": finding.grade.value,
                    "message": finding.message,
                    "advice": finding.advice,
                }
                for finding in self.findings
            ],
        }

    def _messages(self, grade: Grade) -> list[str]:
        return [f.message for f in self.findings if f.grade is grade]
