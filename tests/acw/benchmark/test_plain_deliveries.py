from __future__ import annotations

import pytest

from acw.benchmark import children, plain_deliveries
from acw.benchmark.children import Child
from acw.benchmark.deliveries import receiver
from acw.benchmark.errors import BenchmarkError
from acw.benchmark.plain_deliveries import BODY_VARIABLE
from acw.benchmark.scratch import Scratch


@pytest.mark.parametrize("how", ["sender", "bare"])
def test_each_request_is_an_event_of_its_own(scratch: Scratch, how: str):
    env = {**scratch.env(), BODY_VARIABLE: "{}"}
    with (
        receiver(scratch, 5) as (url, check),
        Child("acw.benchmark.plain_deliveries", [how, url, 5, 2], env) as sender,
    ):
        (result,) = children.run([sender])
        check()
    assert result["ended"] > result["began"]


@pytest.mark.parametrize("send", [plain_deliveries.by_sender, plain_deliveries.bare])
def test_both_give_the_answers_status(scratch: Scratch, send: plain_deliveries.Send):
    with receiver(scratch, 1) as (url, check):
        assert send(url, b"{}", {"X-ACW-Event-Id": "one"}) == 200
        check()


def test_one_that_is_not_taken_ends_it(scratch: Scratch):
    env = {**scratch.env(), BODY_VARIABLE: "{}"}
    url = "http://127.0.0.1:1/hook"
    with (
        Child("acw.benchmark.plain_deliveries", ["sender", url, 1, 1], env) as sender,
        pytest.raises(BenchmarkError, match="answered None, not 200"),
    ):
        children.run([sender])
