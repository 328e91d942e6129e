"""Pages over tables that are too large to be counted."""

from __future__ import annotations

from functools import cached_property
from typing import cast

from django.core.paginator import Paginator
from django.db.models import QuerySet

from jobs.models import Job

COUNTED = 10_000
"""Rows that are counted, and so can be paged through; beyond them there are filters."""


class CappedPaginator(Paginator[Job]):
    """Counts to ``COUNTED`` and no further, however many rows there are."""

    @cached_property
    def count(self) -> int:
        rows = cast("QuerySet[Job]", self.object_list)
        # Of the keys: what the list shows beside them would be worked out for each row that is counted.
        return rows.order_by().values("pk")[:COUNTED].count()
