"""Doing one thing to many rows for a button or a list's action: what came of it, as a sentence."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from django.db.models import Model, QuerySet

from jobs.action_result import Result, Skip
from workspaces.exceptions import WorkspacesError

ModelT = TypeVar("ModelT", bound=Model)


def each(
    participle: str, act: Callable[..., object]
) -> Callable[[QuerySet[ModelT], str, float], Result]:
    """As a verb's ``act``: calls ``act(row, actor=…)`` for one row after the other, each in its own transaction.

    A row that refuses, by an error of this app, is skipped and said why.
    """
    return partial(_each, participle, act)


def _each(
    participle: str,
    act: Callable[..., object],
    rows: QuerySet[ModelT],
    actor: str,
    seconds: float,
) -> Result:
    end = time.monotonic() + seconds
    result = Result(participle=participle)
    refused: dict[type[WorkspacesError], list[tuple[str, str]]] = defaultdict(list)
    for key in rows.order_by("pk").values_list("pk", flat=True):
        if time.monotonic() > end:
            result.unfinished = True
            break
        row = rows.model._default_manager.filter(pk=key).first()
        if row is None:
            continue
        try:
            act(row, actor=actor)
            result.done.append(str(key))
        except WorkspacesError as error:
            refused[type(error)].append((str(key), str(error)))
    for skipped in refused.values():
        reason = skipped[0][1]
        if len(skipped) > 1:
            reason = f"such as, {reason}"
        result.skipped += [Skip(target=key, reason=reason) for key, _ in skipped]
    return result
