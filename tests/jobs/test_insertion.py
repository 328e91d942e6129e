from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.transaction import TransactionManagementError
from django.utils import timezone

from jobs.identifiers import uuid7s
from jobs.insertion import Row, insert
from jobs.models import Job

pytestmark = pytest.mark.django_db


def rows(count: int = 3) -> list[Row]:
    return [
        Row(job_id, "test.noop", None, "default", 2, "{}", 5, None, None)
        for job_id in uuid7s(count)
    ]


def stored(name: str) -> list[object]:
    return list(Job.objects.order_by("id").values_list(name, flat=True))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("type", ["a", "b", "c"]),
        ("ref_id", [None, "", "x"]),
        ("ref_id", ["", "", "x"]),
        ("ref_id", ["a\x1fb", "c", "d"]),
        ("ref_id", ["\x1f", "\x1f", ""]),
        ("ref_id", ["NULL", "null", '{"a",b}']),
        ("ref_id", ["'; --", "\\", '"']),
        ("queue", ["host:a", "ümlaut", "%s %(id)s"]),
        ("priority", [0, 3, 2]),
        ("max_attempts", [1, 2, 3]),
        ("unique_key", ["c", None, "a"]),
    ],
)
def test_each_row_gets_its_own_value(name: str, values: list[object]) -> None:
    each = [
        Row(**{**row._asdict(), name: value})
        for row, value in zip(rows(), values, strict=True)
    ]
    insert(each, returning=False)
    assert stored(name) == values


def test_payloads_are_stored_as_they_are() -> None:
    texts = ['{"a":"\\u001f"}', "{}", '{"a":[1,"é","\\\\"]}']
    each = [row._replace(payload=text) for row, text in zip(rows(), texts, strict=True)]
    insert(each, returning=False)
    assert stored("payload") == [{"a": "\x1f"}, {}, {"a": [1, "é", "\\"]}]


def test_a_time_is_kept_and_none_is_now_on_the_databases_clock() -> None:
    at = timezone.now() + dt.timedelta(days=1)
    first, second, third = rows()
    times = insert([first._replace(run_at=at), second, third], returning=True)
    assert times[first.id][0] == at
    assert times[second.id][0] == times[third.id][1]


def test_rows_that_are_all_alike_differ_in_their_ids_only() -> None:
    each = rows(1000)
    assert insert(each, returning=False) == {}
    assert stored("id") == [row.id for row in each]


def test_a_live_key_is_left_out() -> None:
    first, second, third = rows()
    insert([first._replace(unique_key="a")], returning=False)
    found = insert(
        [second._replace(unique_key="a"), third._replace(unique_key="b")],
        returning=True,
    )
    assert set(found) == {third.id}


def test_it_is_a_statement_like_any_other_of_djangos(
    django_assert_num_queries: Any,
) -> None:
    with django_assert_num_queries(1) as captured:
        insert(rows(1), returning=True)
    assert "INSERT INTO jobs" in captured.captured_queries[0]["sql"]


def test_its_errors_are_djangos() -> None:
    (row,) = rows(1)
    with pytest.raises(IntegrityError), transaction.atomic():
        insert([row, row], returning=False)


def test_it_refuses_a_transaction_that_is_broken() -> None:
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            insert(rows(1), returning=False)
