"""System checks of what is plugged into the task market. They import it, so only a worker makes them, and ``manage.py check --deploy``.

``tasks.E001``  TASKS_CONTEST_JUDGE cannot be imported or called
``tasks.E002``  TASKS_ARBITER cannot be imported or called
"""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register

from jobs.checks import WORKER
from workspaces.tasks import sockets

_IDS = {sockets.CONTEST_JUDGE: "tasks.E001", sockets.ARBITER: "tasks.E002"}


@register(WORKER, deploy=True)
def check_sockets(**_: Any) -> list[CheckMessage]:
    """tasks.E001 and tasks.E002."""
    found: list[CheckMessage] = []
    for setting, check_id in _IDS.items():
        try:
            sockets.plugged(setting)
        except sockets.SocketError as error:
            found.append(
                Error(
                    str(error),
                    hint=f"Set {setting} to the dotted path of a function, as module.function, or leave it out.",
                    id=check_id,
                )
            )
    return found
