"""The worker of Oban; it is found by this module's name."""

from __future__ import annotations

import meter
from oban import Job, worker


@worker(queue="default")
class Noop:
    async def process(self, job: Job) -> None:
        meter.hit(job.args["t"])
