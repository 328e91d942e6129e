"""The search of the lists of what workspaces have: a number is an ID where a row has it, and a text otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TypeVar

from django.db.models import Model, Q, QuerySet

ModelT = TypeVar("ModelT", bound=Model)

_LARGEST_ID = 2**63 - 1
_DIGITS = len(str(_LARGEST_ID))


def found(
    rows: QuerySet[ModelT], term: str, *, ids: Sequence[str], texts: Sequence[str]
) -> QuerySet[ModelT]:
    """Those of the rows that have ``term``, a number, in one of the columns ``ids``; where none has, by the lookups ``texts``.

    So the ID of a log or a command finds that row alone, however many branches have the number in their names, and a
    name of digits is found where it is no row's ID.
    """
    term = term.strip()
    if not term:
        return rows
    if (number := number_in(term)) is not None:
        exactly = rows.filter(_any(ids, number))
        if exactly.exists():
            return exactly
    return rows.filter(_any(texts, term))


def number_in(term: str) -> int | None:
    """The ID that is meant, in plain digits; None where it can be none."""
    if not (term.isascii() and term.isdigit() and len(term) <= _DIGITS):
        return None
    number = int(term)
    return number if number <= _LARGEST_ID else None


def _any(lookups: Sequence[str], value: object) -> Q:
    return reduce(or_, (Q(**{lookup: value}) for lookup in lookups))
