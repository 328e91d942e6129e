"""The periodic runners ``task_reconcile`` and ``task_report``."""

from __future__ import annotations

import threading

from jobs.registry import Summary, runner
from workspaces.tasks import reconcile, report


@runner("task_reconcile")
def task_reconcile(stop: threading.Event) -> Summary:
    """See that each live deadline has its job, and mend what has not."""
    return reconcile.reconcile(stop)


@runner("task_report")
def task_report(stop: threading.Event) -> Summary:
    """Tell the admins what became of tasks since the last report, and what waits for whom."""
    return report.report(stop)
