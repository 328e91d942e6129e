"""The task of the peers that are Django apps."""

from __future__ import annotations

import meter
from django.tasks import task


@task()
def noop(t: float = 0) -> None:
    meter.hit(t)
