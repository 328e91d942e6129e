"""What is done in the scratch schema, by processes whose settings name it: lay tasks out, act without a queue, count, check.

::

    python -m tests.benchmarks.tasks.inside lay 10000
"""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import django

BATCH = 1_000
_LONG = dt.timedelta(hours=10)
_MINUTE = dt.timedelta(minutes=1)
MIX = (
    "open_expire",
    "hold_timeout",
    "checkpoint_miss",
    "contest_close",
    "review_auto_accept",
)
_CHECKS = {
    "tasks that are not where they must be": """
SELECT count(*) FROM tasks WHERE concat_ws(' ', description, status, misses, returns) NOT IN ('open_expire expired 0 0',
    'hold_timeout open 0 1', 'checkpoint_miss held 1 0', 'contest_close reviewing 0 0', 'review_auto_accept accepted 0 0')
""",
    "tasks with other than one event": """
SELECT count(*) FROM tasks t WHERE (SELECT count(*) FROM task_events e WHERE e.task_id = t.id AND e.action = t.description) <> 1
    OR (SELECT count(*) FROM task_events e WHERE e.task_id = t.id) <> 1
""",
    "tasks told of other than once to each": """
SELECT count(*) FROM tasks t LEFT JOIN (
    SELECT (data->>'task_id')::bigint AS id, count(*), count(DISTINCT user_id) AS people FROM notifications GROUP BY 1
) n USING (id) WHERE coalesce(n.count, 0) <> CASE WHEN description IN ('open_expire', 'contest_close') THEN 1 ELSE 2 END
    OR n.count <> n.people
""",
    "deadline jobs that are due and not completed": """
SELECT count(*) FROM jobs WHERE ref_id IS NOT NULL AND run_at <= now() AND status <> 'completed'
""",
}


def lay(count: int) -> dict[str, Any]:
    """As many tasks, a fifth of them for each of the deadlines in the mix, which were in the last minute."""
    from django.contrib.auth.models import User

    from workspaces.tasks import agents, clock, deadlines
    from workspaces.tasks.models import Submission, Task

    alice, bob = (
        agents.of_user(User.objects.get_or_create(username=name)[0])
        for name in ("alice", "bob")
    )
    now = clock.now()
    kinds: dict[str, dict[str, Any]] = {
        "open_expire": {"status": "open"},
        "hold_timeout": {"status": "held", "holder": bob, "returns_allowed": 3},
        "checkpoint_miss": {
            "status": "held",
            "holder": bob,
            "final_miss": 3,
            "checkpoint_every": dt.timedelta(hours=1),
            "hold_until": now + _LONG,
        },
        "contest_close": {"status": "open", "template": "contest", "hold_for": None},
        "review_auto_accept": {"status": "reviewing", "holder": bob},
    }
    columns = {
        "open_expire": "open_until",
        "hold_timeout": "hold_until",
        "checkpoint_miss": "checkpoint_due_at",
        "contest_close": "open_until",
        "review_auto_accept": "review_until",
    }
    for first in range(0, count, BATCH):
        tasks = []
        for number in range(first, min(first + BATCH, count)):
            kind = MIX[number % len(MIX)]
            values = {
                "template": "direct",
                "hold_for": _LONG,
                **kinds[kind],
                columns[kind]: now - _MINUTE * (1 - number / count),
            }
            tasks.append(
                Task(
                    title=f"Task {number}",
                    description=kind,
                    publisher=alice,
                    open_for=_LONG,
                    review_for=_LONG,
                    **values,
                )
            )
        Task.objects.bulk_create(tasks)
        Submission.objects.bulk_create(
            Submission(task=task, agent=bob, text="done", created_at=now - _LONG)
            for task in tasks
            if task.description in ("contest_close", "review_auto_accept")
        )
        for task in tasks:
            task.transfer_until = None
        deadlines.watch(tasks)
    return {"laid": count}


def act(part: int, parts: int) -> dict[str, Any]:
    """The same transitions without a queue, one after the other: every ``parts``-th task."""
    from workspaces.tasks import machine
    from workspaces.tasks.actors import WORKER
    from workspaces.tasks.models import Task
    from workspaces.tasks.states import Action

    mine = [
        row
        for n, row in enumerate(
            Task.objects.order_by("pk").values_list("pk", "description")
        )
        if n % parts == part
    ]
    sys.stdin.readline()
    began = time.monotonic()
    for task_id, action in mine:
        assert machine.apply(task_id, Action(action), by=WORKER).ok
    return {"began": began, "ended": time.monotonic(), "acts": len(mine)}


def count() -> dict[str, Any]:
    """The statements of one transition of each kind."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from workspaces.tasks import machine
    from workspaces.tasks.actors import WORKER
    from workspaces.tasks.models import Task
    from workspaces.tasks.states import Action

    found: dict[str, Any] = {}
    for task_id, action in Task.objects.order_by("pk").values_list("pk", "description"):
        with CaptureQueriesContext(
            connection,
        ) as captured:
            machine.apply(task_id, Action(action), by=WORKER)
        found.setdefault(action, [query["sql"][:110] for query in captured])
    return found


def check() -> dict[str, Any]:
    """How many tasks are not as they must be once all is through."""
    from django.db import connection

    from workspaces.tasks import watched
    from workspaces.tasks.models import Task

    wrong: Counter[str] = Counter()
    with connection.cursor() as cursor:
        for what, statement in _CHECKS.items():
            cursor.execute(statement)
            wrong[what] = cursor.fetchone()[0]
    live = Task.objects.live().with_transfers()
    wrong["live deadlines without a job"] = len(watched.unwatched(list(live)))
    return dict(wrong)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "acw.benchmark.settings")
    django.setup()
    verb, *numbers = sys.argv[1:]
    verbs: dict[str, Callable[..., dict[str, Any]]] = {
        "lay": lay,
        "act": act,
        "count": count,
        "check": check,
    }
    result = verbs[verb](*map(int, numbers))
    sys.stdout.write(json.dumps(result) + "\n")
