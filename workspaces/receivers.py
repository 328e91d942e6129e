"""What this app makes of the queue's news. Connected in :meth:`workspaces.apps.WorkspacesConfig.ready`."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from jobs.models import Job
from workspaces import clone_handlers
from workspaces.failures import Failure
from workspaces.job_types import CLONE


@transaction.atomic
def on_job_dead(*, job: Job, error: str, **_: Any) -> None:
    """A clone that ended its worker each time is given up: else it would be taken up again by every tick."""
    if job.type == CLONE and str(job.ref_id).isdecimal():
        clone_handlers.record_failure(
            int(job.ref_id or 0), Failure.REFUSED, error, again=False
        )
