from __future__ import annotations

import pytest

from notify.checkup.report import Finding, Grade, Report, Step


def report(**grades: Grade) -> Report:
    findings = [
        Finding(
            step=step,
            grade=grades.get(step.name.lower(), Grade.PASSED),
            message=f"{step} was looked at",
            advice="look again",
        )
        for step in Step
    ]
    return Report(
        endpoint="chat", target="https://a.example #0", findings=tuple(findings)
    )


@pytest.mark.parametrize(
    ("grades", "ok", "summary"),
    [
        ({}, True, "chat takes what is genuine, and refuses the rest."),
        (
            {"tls": Grade.WARNING},
            True,
            "chat does what it must; tls was looked at.",
        ),
        (
            {"tls": Grade.WARNING, "old": Grade.UNKNOWN},
            False,
            "chat: not known: old timestamp.",
        ),
        (
            {"old": Grade.UNKNOWN, "forged": Grade.FAILED, "altered": Grade.FAILED},
            False,
            "chat: forged signature was looked at; altered body was looked at.",
        ),
    ],
    ids=["well", "warning", "unknown", "failed"],
)
def test_the_worst_of_it_is_said_first(
    grades: dict[str, Grade], ok: bool, summary: str
):
    found = report(**grades)

    assert found.ok is ok
    assert found.summary == summary


def test_scripts_get_every_finding():
    printed = report(dns=Grade.FAILED).as_json()

    assert printed["ok"] is False
    assert (printed["endpoint"], printed["target"]) == ("chat", "https://a.example #0")
    assert [finding["step"] for finding in printed["findings"]] == list(Step)
    assert printed["findings"][0] == {
        "step": "dns",
        "grade": "failed",
        "message": "dns was looked at",
        "advice": "look again",
    }
