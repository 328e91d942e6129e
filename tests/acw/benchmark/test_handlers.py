from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from acw.benchmark import job_types, meter
from acw.benchmark.scratch import Scratch

ROOT = Path(__file__).resolve().parents[3]
CALL = """
import json, time, uuid
import django
django.setup()
from django.utils import timezone
from jobs import registry
from jobs.context import JobContext

def call(name, payload):
    context = JobContext(
        job_id=uuid.uuid4(), type=name, ref_id=None, queue="default", attempt=1, max_attempts=1, lease_seq=1,
        enqueued_at=timezone.now(),
    )
    registry.job_type(name).handler(context, payload)

call("bench.noop", {})
call("bench.noop_deleted", {})
call("bench.mixed", {"seconds": 0.001})
call("bench.mixed", {"seconds": 0})
call("bench.latency", {"sent": time.monotonic() - 100})
call("bench.latency", {"sent": 0})
kept = {name: registry.job_type(name).keep_completed for name in registry.job_types()}
print(json.dumps(kept))
"""


def test_every_type_has_a_handler_that_counts_itself(scratch: Scratch):
    done = subprocess.run(
        [sys.executable, "-c", CALL],
        cwd=ROOT,
        env=scratch.env(),
        capture_output=True,
        text=True,
        check=True,
    )
    kept = json.loads(done.stdout)
    assert {name for name in kept if name.startswith("bench.")} == job_types.ALL
    assert [name for name in job_types.ALL if not kept[name]] == ["bench.noop_deleted"]
    assert meter.counted(scratch.meters) == 6
    begun, waited = sorted(meter.noted(scratch.meters), reverse=True)
    assert begun > 0
    assert waited >= 100 or begun >= 100
