"""A judge as an operator would write one: it tells a file that it was asked, and thinks for as long as another one is there."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path

from workspaces.tasks.judge import ContestTask, Entry, Verdict

_PAUSE = 0.02


def judge(
    task: ContestTask, checklist: Sequence[str], entries: Sequence[Entry]
) -> Verdict:
    files = json.loads(task.description)
    with Path(files["ledger"]).open("a") as ledger:
        ledger.write(f"{len(entries)} entries, {list(checklist)}\n")
    while Path(files["thinks"]).exists():
        threading.Event().wait(_PAUSE)
    best = max(entries, key=lambda entry: len(entry.done))
    return Verdict(winner=best.id, reasons=f"{best.agent} has done the most.")
