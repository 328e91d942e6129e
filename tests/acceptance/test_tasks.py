"""The task market as processes: commands, a worker that the deadlines go by, a judge, and a receiver of webhooks."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.product import Product, await_true
from tests.acceptance.receiver import Receiver
from tests.acceptance.test_main_job import QUICK, add_endpoint, verified

Install = Callable[..., Product]

TOPICS = "task.published,task.taken,task.returned,task.closed,task.submitted,task.review_warning,task.accepted,task.expired"
_CONTEST = """
from workspaces.tasks import actions, agents
from workspaces.tasks.actors import acting
alice, bob, carol = (acting(agents.add(name)) for name in ("alice", "bob", "carol"))
task = actions.publish(by=alice, title="Sort", template="contest", description={description!r}, checklist=["a", "b"])
assert actions.submit(task.pk, by=bob, text="half", done=[1]).ok
print(task.pk, actions.submit(task.pk, by=carol, text="all", done=[1, 2]).created_id)
"""
# Deadlines that are a moment apart come in any order where the worker is slow: one comes when the one before has worked.
_PASSES = """
from workspaces.tasks import clock, machine
from workspaces.tasks.models import Task
Task.objects.filter(pk={task}).update({deadline}=clock.now())
machine.watch({task})
"""


class Contest:
    """One with two entries; ``thinks`` keeps the judge from answering while it is there."""

    def __init__(self, product: Product, directory: Path, *, thinks: bool) -> None:
        self._product = product
        self.ledger, self.thinks = directory / "ledger", directory / "thinks"
        self.ledger.touch()
        if thinks:
            self.thinks.touch()
        files = {"ledger": str(self.ledger), "thinks": str(self.thinks)}
        code = _CONTEST.format(description=json.dumps(files))
        told = product.manage("shell", "--no-imports", "-c", code).split()
        self.id, self.best = map(int, told)

    def asked(self) -> list[str]:
        return self.ledger.read_text().splitlines()

    def goes_to_the_judge(self) -> None:
        """All its deadlines pass, one after the other."""
        self._passes("open_until")
        has_status(self._product, self.id, "reviewing")
        self._passes("review_warn_at")
        warned = "SELECT FROM tasks WHERE id = %s AND review_warn_at IS NULL"
        self._product.await_sql(warned, self.id)
        self._passes("review_until")

    def _passes(self, deadline: str) -> None:
        code = _PASSES.format(task=self.id, deadline=deadline)
        self._product.manage("shell", "--no-imports", "-c", code)


@pytest.fixture
def product(install: Install, receiver: Receiver) -> Product:
    product = install(
        **QUICK,
        JOBS_JOB_REAPER_INTERVAL="200ms",
        TASKS_CONTEST_JUDGE="tests.acceptance.judged.judge",
    )
    product.add_admin("ada")
    add_endpoint(product, receiver, TOPICS)
    return product


def has_status(product: Product, task: int, status: str) -> None:
    product.await_sql("SELECT FROM tasks WHERE id = %s AND status = %s", task, status)


def told(product: Product, receiver: Receiver, expected: dict[str, int]) -> None:
    """Each topic has come as often as this, and none comes twice."""

    def all_delivered() -> bool:
        left = product.sql(
            "SELECT FROM jobs WHERE type = 'webhook.deliver' AND status <> 'completed'"
        )
        return len(receiver.received) >= sum(expected.values()) and not left

    await_true(all_delivered, "all is delivered", evidence=product.evidence)
    topics = [str(verified(each)["topic"]) for each in receiver.received]
    assert Counter(topics) == Counter(
        {f"task.{topic}": count for topic, count in expected.items()}
    )
    assert len({each.headers["X-ACW-Event-Id"] for each in receiver.received}) == len(
        topics
    )


def test_a_task_is_given_back_until_it_is_closed_and_a_contest_is_judged(
    product: Product, receiver: Receiver, tmp_path: Path
) -> None:
    worker = product.worker()
    contest = Contest(product, tmp_path, thinks=False)
    terms = ["--hold-for", "1s", "--returns-allowed", "1"]
    for_bob = ["--as", "service:bob", "--json"]
    said = product.manage(
        "task", "publish", "Count", *terms, "--as", "service:alice", "--json"
    )
    task = json.loads(said)["task_id"]
    product.manage("task", "take", str(task), *for_bob)
    has_status(product, task, "open")
    late = product.manage(
        "task", "submit", str(task), "--text", "done", *for_bob, status=1
    )
    assert '"code": "wrong_status"' in late
    product.manage("task", "take", str(task), *for_bob)
    has_status(product, task, "closed")

    contest.goes_to_the_judge()
    has_status(product, contest.id, "accepted")
    assert contest.asked() == ["2 entries, ['a', 'b']"]
    decided = product.sql(
        "SELECT id, reason FROM task_submissions WHERE decision = 'accepted'"
    )
    assert decided == [(contest.best, "service:carol has done the most.")]
    told(
        product,
        receiver,
        {
            "published": 2,
            "taken": 2,
            "returned": 1,
            "closed": 1,
            "submitted": 1,
            "review_warning": 1,
            "accepted": 1,
        },
    )
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    unfinished = product.sql(
        "SELECT type FROM jobs WHERE ref_id IN (%s, %s) AND type <> 'webhook.deliver' AND run_at <= now() "
        "AND status <> 'completed'",
        str(task),
        str(contest.id),
    )
    assert unfinished == []


def test_another_worker_takes_over_from_one_that_was_killed_beside_the_judge(
    product: Product, receiver: Receiver, tmp_path: Path
) -> None:
    first = product.worker(ACW_HOST="one")
    contest = Contest(product, tmp_path, thinks=True)
    contest.goes_to_the_judge()
    await_true(contest.asked, "the judge is asked", evidence=product.evidence)
    first.send(signal.SIGKILL)
    first.wait()
    contest.thinks.unlink()
    left = product.sql(
        "SELECT status, lease_until <= now() + interval '60 s' FROM jobs "
        "WHERE type = 'review_auto_accept' AND run_at <= now()"
    )
    assert left == [("running", True)]
    has_status(product, contest.id, "reviewing")

    # As if the minute of the lease were over.
    product.sql("UPDATE jobs SET lease_until = now() WHERE status = 'running'")
    product.worker(ACW_HOST="another")
    has_status(product, contest.id, "accepted")
    assert len(contest.asked()) == 2
    ((status, attempts),) = product.await_sql(
        "SELECT status, attempts FROM jobs "
        "WHERE type = 'review_auto_accept' AND run_at <= now() AND status <> 'running'"
    )
    assert (status, attempts) == ("completed", 2)
    told(
        product,
        receiver,
        {"published": 1, "submitted": 1, "review_warning": 1, "accepted": 1},
    )
