"""Makes the heartbeat hang for as long as the file that ``TEST_HANG`` names is there."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from django.apps import AppConfig


class StallingConfig(AppConfig):
    name = "tests.acceptance.stalling"

    def ready(self) -> None:
        from jobs.heartbeat import Heartbeat

        hang = os.environ.get("TEST_HANG")
        if not hang:
            return
        beat = Heartbeat.beat

        def hang_then_beat(heartbeat: Heartbeat) -> None:
            pause = threading.Event()
            while Path(hang).exists():
                pause.wait(0.05)
            beat(heartbeat)

        setattr(Heartbeat, "beat", hang_then_beat)  # noqa: B010 (an assignment has a type)
