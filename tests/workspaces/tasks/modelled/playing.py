"""The steps: what agents and operators do, rightly and wrongly, what the worker does in whatever order, and what is meddled with."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from random import Random
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from jobs import actions as job_actions
from tests.workspaces.tasks import market
from tests.workspaces.tasks.modelled import judges
from tests.workspaces.tasks.modelled.cast import AGENTS, WORKTREES
from tests.workspaces.tasks.modelled.expected import Expected
from tests.workspaces.tasks.modelled.looking import TYPES, JobRow, rows
from tests.workspaces.tasks.modelled.stage import (
    AUTO_ACCEPT,
    JUMPS,
    WORKERS_JUMPS,
    Stage,
)
from tests.workspaces.tasks.modelled.world import OPERATOR, No
from workspaces import holds
from workspaces.holding import leases
from workspaces.models import Worktree
from workspaces.tasks import actions, agents, machine
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.states import Action

HOUR = dt.timedelta(hours=1)
MOST_TASKS = 2
ENDED = {"accepted", "rejected", "expired", "closed", "cancelled"}
PEOPLES = [
    "take",
    "use_worktree",
    "checkpoint",
    "submit",
    "give_back",
    "offer_transfer",
    "accept_transfer",
    "decline_transfer",
    "withdraw_transfer",
    "accept",
    "reject",
    "pick_winner",
    "cancel",
    "reopen",
]
FITTING = {
    "direct open": ["take"],
    "direct held": ["checkpoint"] * 4
    + ["use_worktree", "give_back"]
    + ["submit", "offer_transfer"] * 4,
    "direct offered": ["accept_transfer"] * 4
    + [
        "decline_transfer",
        "withdraw_transfer",
        "offer_transfer",
        "submit",
        "give_back",
    ],
    "direct reviewing": ["accept", "reject", "reject", "cancel"],
    "contest open": ["submit"] * 9 + ["cancel"],
    "contest reviewing": ["pick_winner", "pick_winner", "reject", "cancel"],
}
"""What one would do to such a task, the likelier the more often."""

WORKTREE = [None] * 4 + WORKTREES
SWITCHED = ["carol", "dave", "service:lone"]
TERMS: dict[str, list[Any]] = {
    "open_for": [10 * HOUR, 30 * HOUR],
    "hold_for": [4 * HOUR, 8 * HOUR],
    "every": [0 * HOUR, HOUR / 3, HOUR, 2 * HOUR],
    "review_for": [HOUR / 2, 6 * HOUR],
    "final_miss": [1, 2, 3, 3],
    "returns_allowed": [0, 1, 2],
}
PEOPLE = (
    ["do_what_fits"] * 10
    + ["do_anything"] * 2
    + ["publish", "configure_a_judge", "switch", "hold_a_worktree"]
)
WORKERS = ["run_what_is_due"] * 7 + ["run_any", "run_one_again", "let_one_die"]
SEED = st.integers(0, 2**32)


def _dice(seed: str) -> Random:
    return Random(seed)  # noqa: S311 (it is to be the same in each run)


class Market(Stage):
    """A few tasks, and everybody at them."""

    # The library's own draws come to the same few things too often. So there is a dice for each step, which another step
    # changes nothing of: a failing sequence becomes shorter as steps are left out.

    @initialize(seed=SEED)
    def there_are_tasks(self, seed: int) -> None:
        self.seed = seed
        self.step = 0
        dice = _dice(str(seed))
        self.configure_a_judge(dice)
        self.begin(dice, None)
        for direct in dice.choice([[True], [True], [False], [True, False]]):
            self.publish(dice, direct=direct)

    @rule(seed=SEED)
    def something_happens(self, seed: int) -> None:
        self.step += 1
        if not seed:
            return
        dice = _dice(f"{self.seed} {self.step} {seed}")
        people = dice.random() < 0.75
        what = dice.choice(PEOPLE if people else WORKERS)
        jump = dice.choice(JUMPS if people else WORKERS_JUMPS)
        self.begin(dice, jump)
        note(f"{what}, {jump or 'at once'}")
        getattr(self, what)(dice)

    def publish(self, dice: Random, *, direct: bool | None = None) -> None:
        by = dice.choice(AGENTS)
        if len(self._able()) == MOST_TASKS or not self.world.may_act(by):
            return
        if direct is None:
            direct = dice.random() < 0.6
        terms: dict[str, Any] = {
            name: dice.choice(values) for name, values in TERMS.items()
        }
        template = "direct" if direct else "contest"
        every = terms.pop("every")
        given = {**terms, "checkpoint_every": every}
        if not direct:
            del given["hold_for"], given["checkpoint_every"]
            del given["final_miss"], given["returns_allowed"]
            terms |= {"hold_for": None, "final_miss": 1, "returns_allowed": 0}
        task = actions.publish(
            by=self.cast.actor(by), title="Sort the lists", template=template, **given
        )
        expected = Expected(
            world=self.world,
            id=task.pk,
            template=template,
            publisher=by,
            every=every if direct and every else None,
            **terms,
        )
        self.world.tasks.append(expected)
        expected.publish(by, self.at)

    def do_what_fits(self, dice: Random) -> None:
        if not self._able():
            self.publish(dice)
            return
        task = dice.choice(self._able())
        kind = f"{task.template} {'offered' if task.offer() else task.status}"
        fitting = FITTING.get(kind, ["reopen"])
        if task.status == "held" and task.misses:
            # It is a matter of misses in a row.
            fitting = [*fitting, *["checkpoint"] * 20]
        action = dice.choice(fitting)
        self.perform(task, action, self._whose(task, action, dice), dice)

    def _able(self) -> list[Expected]:
        """Those of which something can still become."""
        return [task for task in self.world.tasks if task.status != "accepted"]

    def do_anything(self, dice: Random) -> None:
        action = dice.choice([*PEOPLES, *TYPES])
        by = dice.choice(AGENTS)
        self.perform(dice.choice(self.world.tasks), action, by, dice)

    def _whose(self, task: Expected, action: str, dice: Random) -> str:
        """Mostly who may do it."""
        offer = task.offer()
        theirs: dict[str, str | None] = {
            "take": None,
            "submit": task.holder,
            "accept_transfer": offer.to if offer else None,
            "decline_transfer": offer.to if offer else None,
        }
        publishers = ("accept", "reject", "pick_winner", "cancel", "reopen")
        default = task.publisher if action in publishers else task.holder
        entrants = [entry.agent for entry in task.pending()]
        anybody = dice.choice([*AGENTS, *entrants * 3])
        right = theirs.get(action, default) or anybody
        others = [OPERATOR] if action in publishers else AGENTS
        return dice.choice([right, right, right, dice.choice(others)])

    def perform(self, task: Expected, action: str, by: str, dice: Random) -> None:
        if action in TYPES:
            outcome = machine.apply(task.id, Action(action), by=self.cast.actor(by))
            given: dict[str, Any] = {}
        else:
            outcome, given = self._done_for_real(task, action, by, dice)
        code = None
        try:
            task.act(action, by, self.at, **given)
        except No as no:
            code = no.code
        self.seen[f"{action}: {code or 'ok'}"] += 1
        note(f"task {self.world.tasks.index(task)}: {action} by {by}: {code or 'ok'}")
        assert (outcome.code, outcome.ok) == (code, code is None), outcome.reason
        assert outcome.status == task.status
        assert bool(outcome.reason) == (code is not None)

    def _done_for_real(
        self, task: Expected, action: str, by: str, dice: Random
    ) -> tuple[Outcome, dict[str, Any]]:
        """What the product says; and what the model is given."""
        actor = self.cast.actor(by)
        do: Callable[..., Outcome] = getattr(actions, action)
        if action in ("take", "use_worktree"):
            name = dice.choice(WORKTREE)
            if name is not None and dice.choice([True, True, False]):
                self.give(name, by)
            worktree = self._worktree(name) if name else None
            return do(task.id, by=actor, worktree=worktree), {"worktree": name}
        if action == "submit":
            outcome = do(task.id, by=actor, text="done")
            return outcome, {"number": outcome.created_id}
        if action == "offer_transfer":
            to = dice.choice(AGENTS)
            outcome = do(task.id, by=actor, to=self.cast.agent(to))
            return outcome, {"to": to, "number": outcome.created_id}
        if action == "pick_winner":
            ids = [entry.id for each in self.world.tasks for entry in each.entries]
            own = [entry.id for entry in task.pending()]
            submission = dice.choice([*own, *own, *own, *ids, 0])
            outcome = do(task.id, by=actor, submission=submission)
            return outcome, {"submission": submission}
        if action == "reject":
            return do(task.id, by=actor, reason="not yet"), {}
        if action == "reopen":
            longer = dice.choice([None, 5 * HOUR])
            return do(task.id, by=actor, open_for=longer), {"open_for": longer}
        return do(task.id, by=actor), {}

    # The worker, which comes late or early, twice, and in any order.

    def run_what_is_due(self, dice: Random) -> None:
        backwards = dice.choice([True, False])
        due = sorted(
            (job for job in self.onlooker.jobs() if self._is_due(job)),
            key=lambda job: job.deadline or self.at,
            reverse=backwards,
        )
        for job in due:
            self.run(job)

    def _is_due(self, job: JobRow) -> bool:
        return job.live and job.deadline is not None and job.deadline <= self.at

    def run_any(self, dice: Random) -> None:
        job = self._one_of([job for job in self.onlooker.jobs() if job.live], dice)
        if job is not None:
            self.run(job)

    def run_one_again(self, dice: Random) -> None:
        job = self._one_of(self.onlooker.jobs(), dice)
        if job is not None:
            self.run_copy(job, whole=dice.choice([True, False]))

    def let_one_die(self, dice: Random) -> None:
        """Its judge fails until it does; then an operator may retry it."""
        judged = [
            job
            for job in self.onlooker.jobs()
            if job.type == AUTO_ACCEPT and job.status == "pending"
        ]
        job = self._one_of(judged, dice)
        while job is not None and job.status == "pending" and self._fails(job):
            self.run(job)
            job = next(each for each in self.onlooker.jobs() if each.id == job.id)
        dead = [job.id for job in self.onlooker.jobs() if job.status == "dead"]
        if dead and dice.random() < 0.5:
            job_actions.retry(dead, actor="olga")
            self.seen["retried"] += len(dead)

    def _fails(self, job: JobRow) -> bool:
        judged = self._to_be_judged(self.task(job.task))
        return judged and self.judge not in judges.DECIDING

    def _one_of(self, jobs: list[JobRow], dice: Random) -> JobRow | None:
        if not jobs:
            return None
        return dice.choice(jobs)

    # What goes on beside the tasks.

    def configure_a_judge(self, dice: Random) -> None:
        self.plug(dice.choice(list(judges.PATHS)))

    def switch(self, dice: Random) -> None:
        """An agent is disabled, or its user; or both may act again."""
        name = dice.choice(SWITCHED)
        may = dice.choice([True, True, False])
        agent = self.cast.agent(name)
        if agent.user is not None and name != "carol":
            User.objects.filter(pk=agent.user.pk).update(is_active=may)
            (self.world.inactive.discard if may else self.world.inactive.add)(name)
        else:
            agents.switch(agent, enabled=may)
            (self.world.disabled.discard if may else self.world.disabled.add)(name)

    def hold_a_worktree(self, dice: Random) -> None:
        """Whoever had it has it no longer, whatever task it was used for."""
        name = dice.choice(WORKTREES)
        self.give(name, dice.choice(AGENTS))

    def give(self, name: str, by: str) -> None:
        """Have this agent hold the worktree."""
        hold = self.world.worktrees[name]
        if hold.by == by:
            return
        worktree = self._worktree(name)
        if hold.by is not None:
            holds.release(worktree.pk)
        leases.hold(worktree.pk, holder=by, lease=None)
        hold.by, hold.number = by, hold.number + 1

    def _worktree(self, name: str) -> Worktree:
        return Worktree.objects.get(pk=self.cast.worktrees[name])

    # And in the end, when nobody acts any more.

    def everything_comes_to_an_end(self) -> None:
        settings.NOTIFY_WEBHOOK_ENABLED = False
        User.objects.update(is_active=True)
        for _ in range(2):
            market.pass_and_work(3000 * HOUR)
        waiting = rows(
            "SELECT t.id, min(s.id) FROM tasks t JOIN task_submissions s ON s.task_id = t.id AND s.decision = 'pending' "
            "WHERE t.status = 'reviewing' AND t.template = 'contest' GROUP BY t.id"
        )
        for task, entry in waiting:
            actor = self.cast.actor(OPERATOR)
            assert actions.pick_winner(task, by=actor, submission=entry).ok
            self.seen["picked in the end"] += 1
        left = rows("SELECT id, status FROM tasks WHERE status <> ALL(%s)", [*ENDED])
        assert left == []
        assert self.judge not in judges.DECIDING or not waiting or self._gave_up()
        self.histories_are_unbroken()

    def _gave_up(self) -> bool:
        """A job that has died under another judge is an operator's to retry."""
        return bool(rows("SELECT FROM jobs WHERE status = 'dead'"))

    def histories_are_unbroken(self) -> None:
        last: dict[int, str | None] = {}
        for task, source, target in rows(
            "SELECT task_id, source, target FROM task_events ORDER BY id"
        ):
            assert last.get(task) == source
            last[task] = target
        assert last == dict(rows("SELECT id, status FROM tasks"))
