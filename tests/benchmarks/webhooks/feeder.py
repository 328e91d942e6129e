"""Enqueues deliveries at a steady rate: as a program, `python -m tests.benchmarks.webhooks.feeder RATE SECONDS`.

The endpoints take turns. It reports when (monotonic) each delivery was enqueued, by its id, and whether it is for an endpoint
that hangs.
"""

from __future__ import annotations

import os
import sys
import threading
import time

import django

from acw.benchmark import gate

HANGING = "hanging"
"""What the names of such endpoints begin with."""


def main(rate: float, seconds: float) -> None:
    """Feed, see above."""
    # Django has to be set up before these.
    from acw.benchmark.deliveries import BODY
    from acw.benchmark.plain_deliveries import TOPIC
    from jobs.enqueue import enqueue
    from notify.models import WebhookEndpoint
    from notify.webhooks import JOB_TYPE, DeliverPayload

    endpoints = list(WebhookEndpoint.objects.order_by("pk"))
    enqueued: dict[str, tuple[float, bool]] = {}
    began = gate.wait()
    pause = threading.Event()
    for number in range(int(rate * seconds)):
        pause.wait(max(0.0, began + number / rate - time.monotonic()))
        endpoint = endpoints[number % len(endpoints)]
        payload = DeliverPayload(endpoint_id=endpoint.pk, topic=TOPIC, body=BODY)
        at = time.monotonic()
        job = enqueue(JOB_TYPE, payload, ref_id=str(endpoint.pk))
        enqueued[str(job.id)] = (at, endpoint.name.startswith(HANGING))
    gate.report({"enqueued": enqueued})


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "acw.benchmark.settings")
    django.setup()
    main(float(sys.argv[1]), float(sys.argv[2]))
