from __future__ import annotations

import datetime as dt

from jobs.execution import Execution
from jobs.registry import job_handler
from tests.jobs.support import leased_job


def test_it_names_its_job() -> None:
    job = leased_job(ref_id="7")
    context = Execution(job).context
    assert (context.job_id, context.type, context.ref_id) == (job.id, job.type, "7")
    assert (context.attempt, context.lease_seq) == (job.attempts, job.lease_seq)


def test_its_timeout_is_that_of_its_type(noop: str) -> None:
    minute = dt.timedelta(minutes=1)
    job_handler("test.timed", timeout=minute)(lambda context, payload: None)
    assert Execution(leased_job(type="test.timed")).context.timeout == minute
    assert Execution(leased_job(type=noop)).context.timeout is None
    assert Execution(leased_job(type="test.unknown")).context.timeout is None
