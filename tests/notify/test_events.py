from __future__ import annotations

import re

from notify.events import LogEvent


def test_every_name_can_be_searched_for_as_one_word():
    assert all(re.fullmatch(r"(notify|webhook)\.[a-z_]+", event) for event in LogEvent)


def test_a_record_carries_the_bare_name():
    assert f"{LogEvent.DELIVERED}" == "webhook.delivered"
