"""What operators' actions tell the audit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from jobs.signals import operator_acted


@contextmanager
def recorded_audit() -> Iterator[list[dict[str, Any]]]:
    """The facts of each ``operator_acted``, with whether a transaction was open."""
    told: list[dict[str, Any]] = []

    def receiver(*, signal: object, sender: object, **facts: Any) -> None:
        told.append({**facts, "in_transaction": connection.in_atomic_block})

    operator_acted.connect(receiver)
    try:
        yield told
    finally:
        operator_acted.disconnect(receiver)
