from __future__ import annotations

import dataclasses
import datetime as dt

import pytest

from notify.exchange import Exchange


def test_an_exchange_is_a_plain_value():
    exchange = Exchange(status=204, duration=dt.timedelta(seconds=1))

    assert exchange == Exchange(status=204, duration=dt.timedelta(seconds=1))
    assert exchange.failure is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        exchange.status = 500  # type: ignore[misc] # it is frozen
