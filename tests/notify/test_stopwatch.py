from __future__ import annotations

import pytest

from notify.exchange import Phases
from notify.stopwatch import Stopwatch


def test_a_step_that_is_not_come_to_has_no_time():
    stopwatch = Stopwatch()
    with stopwatch.measure("connect_ms"):
        pass

    phases = stopwatch.phases
    assert phases.connect_ms is not None
    assert phases == Phases(connect_ms=phases.connect_ms)


def test_a_step_that_fails_has_its_time_too():
    stopwatch = Stopwatch()
    with pytest.raises(TimeoutError), stopwatch.measure("tls_ms"):
        raise TimeoutError

    assert stopwatch.phases.tls_ms is not None
