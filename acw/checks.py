"""System checks of the environment as a whole: static facts, no queries."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Warning, register  # noqa: A004 - its name

from acw import env
from jobs.checks import WORKER


@register(WORKER)
def check_unknown_variables(**_: Any) -> list[CheckMessage]:
    """acw.W001: a slip in a variable's name would leave the default in force."""
    return [
        Warning(
            f"The environment variable {name} is set, and ACW has none of that name.",
            hint=f"Did you mean {closest}?" if closest else "Remove it.",
            id="acw.W001",
        )
        for name, closest in env.unknown_variables().items()
    ]
