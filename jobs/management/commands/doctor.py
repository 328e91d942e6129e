"""``manage.py doctor``: asks every probe and says what to do."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from jobs import doctor
from jobs.command_line import OperatorCommand
from jobs.doctor import Finding, Level
from jobs.tables import print_json, printable

_STYLES = {Level.OK: "SUCCESS", Level.WARNING: "WARNING", Level.ERROR: "ERROR"}
_LEVEL_WIDTH = max(map(len, Level))


class Command(OperatorCommand):
    help = (
        "Check everything that can go wrong (database, migrations, workers, runners, leases, dead jobs …) and "
        "say what to do. Exit status: 0 when nothing is an error, 1 otherwise."
    )
    # They are one of the probes: a failing one must not silence the others.
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--json", action="store_true", help="print the findings as JSON"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        findings = []
        for name, finding in doctor.examine():
            findings.append((name, finding))
            if not options["json"]:
                self._print(name, finding)
        levels = [finding.level for _, finding in findings]
        errors, warnings = levels.count(Level.ERROR), levels.count(Level.WARNING)
        if options["json"]:
            print_json(self.stdout, _as_json(findings))
        else:
            self.stdout.write(f"\n{errors} errors, {warnings} warnings")
        if errors:
            sys.exit(1)

    def _print(self, name: str, finding: Finding) -> None:
        width = max(map(len, doctor.probe_names()))
        level = getattr(self.style, _STYLES[finding.level])(
            finding.level.ljust(_LEVEL_WIDTH)
        )
        self.stdout.write(f"{level}  {name.ljust(width)}  {printable(finding.message)}")
        if finding.advice:
            indent = " " * (_LEVEL_WIDTH + width + 4)
            self.stdout.write(f"{indent}{printable(finding.advice)}")


def _as_json(findings: list[tuple[str, Finding]]) -> dict[str, Any]:
    return {
        "ok": all(finding.level is not Level.ERROR for _, finding in findings),
        "findings": [
            {
                "probe": name,
                "level": finding.level,
                "message": finding.message,
                "advice": finding.advice,
            }
            for name, finding in findings
        ],
    }
