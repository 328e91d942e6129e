"""Who does something to a task, and what that makes them to it."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser

from workspaces.tasks import agents
from workspaces.tasks.models import Agent, Task, Transfer
from workspaces.tasks.states import Role


@dataclass(frozen=True, kw_only=True)
class Actor:
    """An agent, an operator (who also acts in the publisher's place), or the worker, which has no agent."""

    agent: Agent | None
    operator: bool = False

    def __str__(self) -> str:
        if self.agent is None:
            return "worker"
        return f"{self.agent} (operator)" if self.operator else str(self.agent)

    def roles(self, task: Task, transfer: Transfer | None) -> frozenset[Role]:
        """What this actor is to the task, whose pending transfer is ``transfer``."""
        if self.agent is None:
            return frozenset({Role.WORKER})
        own = self.agent.pk
        published = own == task.publisher_id
        roles = {
            Role.ANYONE: True,
            Role.CONTESTANT: not published,
            Role.PUBLISHER: published or self.operator,
            Role.HOLDER: own == task.holder_id,
            Role.OFFERED: transfer is not None and own == transfer.to_agent_id,
        }
        return frozenset(role for role, has_it in roles.items() if has_it)


WORKER = Actor(agent=None)


def acting(agent: Agent) -> Actor:
    """The agent, acting for itself."""
    return Actor(agent=agent)


def operating(user: AbstractBaseUser) -> Actor:
    """An operator: whoever calls this has checked that the user may act on tasks that are not their own."""
    return Actor(agent=agents.of_user(user), operator=True)
