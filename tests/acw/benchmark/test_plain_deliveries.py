from __future__ import annotations

import psycopg
import pytest

from acw.benchmark import children, plain_deliveries
from acw.benchmark.children import Child
from acw.benchmark.deliveries import endpoint, receiver
from acw.benchmark.errors import BenchmarkError
from acw.benchmark.plain_deliveries import BODY_VARIABLE
from acw.benchmark.scratch import Scratch


@pytest.mark.parametrize("how", ["sender", "requests"])
def test_each_request_is_an_event_of_its_own(scratch: Scratch, how: str):
    env = {**scratch.env(), BODY_VARIABLE: "{}"}
    with (
        receiver(scratch, 5) as (url, check),
        Child("acw.benchmark.plain_deliveries", [how, url, 5, 2], env) as sender,
    ):
        (result,) = children.run([sender])
        check()
    assert result["ended"] > result["began"]


def test_each_attempt_leaves_its_row_closed(
    scratch: Scratch, connection: psycopg.Connection
):
    env = {
        **scratch.env(NOTIFY_WEBHOOK_ALLOW_NETWORKS="127.0.0.0/8"),
        BODY_VARIABLE: "{}",
    }
    with (
        receiver(scratch, 5) as (url, check),
        endpoint(scratch, url) as endpoint_id,
        Child(
            "acw.benchmark.plain_deliveries", ["recorded", endpoint_id, 5, 2], env
        ) as sender,
    ):
        children.run([sender])
        check()
        rows = connection.execute(
            "SELECT verdict, status, finished_at > started_at, count(DISTINCT job_id) FROM webhook_attempts"
            " GROUP BY 1, 2, 3"
        ).fetchall()
    assert rows == [("completed", 200, True, 5)]


def test_an_endpoint_that_is_not_there_ends_it(scratch: Scratch):
    env = {**scratch.env(), BODY_VARIABLE: "{}"}
    with (
        Child("acw.benchmark.plain_deliveries", ["recorded", 7, 1, 1], env) as sender,
        pytest.raises(BenchmarkError, match="there is no endpoint 7 that is enabled"),
    ):
        children.run([sender])


@pytest.mark.parametrize(
    "send", [plain_deliveries.by_sender, plain_deliveries.by_requests]
)
def test_both_give_the_answers_status(scratch: Scratch, send: plain_deliveries.Send):
    with receiver(scratch, 1) as (url, check):
        assert send(url, b"{}") == 200
        check()


def test_one_that_is_not_taken_ends_it(scratch: Scratch):
    env = {**scratch.env(), BODY_VARIABLE: "{}"}
    url = "http://127.0.0.1:1/hook"
    with (
        Child("acw.benchmark.plain_deliveries", ["sender", url, 1, 1], env) as sender,
        pytest.raises(BenchmarkError, match="answered None, not 200"),
    ):
        children.run([sender])
