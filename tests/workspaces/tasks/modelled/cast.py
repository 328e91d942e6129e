"""Who plays: users, service accounts, an operator and an admin; and worktrees, which are rows here and nothing on the disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User

from notify.models import WebhookEndpoint
from tests.workspaces.tasks.modelled.world import OPERATOR
from workspaces.models import Workspace, Worktree
from workspaces.tasks import actors, agents, topics
from workspaces.tasks.actors import Actor
from workspaces.tasks.models import Agent

USERS = ["alice", "bob", "carol", "dave"]
OWNERS = {"service:ci": "bob", "service:lone": None}
AGENTS = [*USERS, *OWNERS, OPERATOR]
ADMIN = "root"
WORKTREES = ["acw/one", "acw/two"]


@dataclass(frozen=True)
class Cast:
    """``names`` by the agents' ids; ``ids`` the other way round; ``worktrees`` by their branches."""

    names: Mapping[int, str]
    ids: Mapping[str, int]
    worktrees: Mapping[str, int]
    owners: Mapping[str, str | None]
    admins: tuple[str, ...] = (ADMIN,)

    def actor(self, name: str) -> Actor:
        """As they are now."""
        if name == OPERATOR:
            return actors.operating(User.objects.get(username=name))
        return actors.acting(self.agent(name))

    def agent(self, name: str) -> Agent:
        return Agent.objects.select_related("user", "owner").get(pk=self.ids[name])


def assembled() -> Cast:
    users = {name: User.objects.create(username=name) for name in [*USERS, OPERATOR]}
    User.objects.create(username=ADMIN, is_superuser=True)
    found = {name: agents.of_user(user) for name, user in users.items()}
    for name, owner in OWNERS.items():
        found[name] = agents.add(
            name.removeprefix("service:"), owner=users[owner] if owner else None
        )
    workspace = Workspace.objects.create(
        name="demo",
        url="https://example.org/demo.git",
        host="elsewhere",
        path="/nowhere",
    )
    trees = [
        Worktree.objects.create(
            workspace=workspace,
            path=f"/nowhere/{branch}",
            branch=branch,
            state=Worktree.State.READY,
        )
        for branch in WORKTREES
    ]
    told = [
        topic.name
        for topic in vars(topics).values()
        if getattr(topic, "name", "").startswith("task.")
    ]
    endpoint = WebhookEndpoint(name="mine", url="http://127.0.0.1:9/hook", topics=told)
    endpoint.set_secret("a-secret-that-signs-nothing-0123456789")
    endpoint.save()
    return Cast(
        names={agent.pk: name for name, agent in found.items()},
        ids={name: agent.pk for name, agent in found.items()},
        worktrees={tree.branch: tree.pk for tree in trees},
        owners=OWNERS,
    )
