"""Agents: found by name, made, switched off, and the people who are told what concerns them.

A user goes by their username, a service account by ``service:`` and its name.
"""

from __future__ import annotations

import re

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction

from notify.recipients import owner_or_admins
from workspaces.tasks.exceptions import AgentExists, InvalidTask, UnknownAgent
from workspaces.tasks.models import Agent
from workspaces.tasks.models.agent import NAME_MAX_LENGTH, SERVICE

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@-]*")


def find(name: str) -> Agent:
    """The agent of this name; raises :class:`~workspaces.tasks.exceptions.UnknownAgent`."""
    if not name.isprintable():  # nor could every such name be asked for
        raise UnknownAgent(f"there is no agent {name!r}")
    if name.startswith(SERVICE):
        found = Agent.objects.filter(name=name.removeprefix(SERVICE)).first()
        if found is None:
            raise UnknownAgent(
                f"there is no service account {name!r}; `manage.py agent add {name.removeprefix(SERVICE)}` makes it"
            )
        return found
    users = get_user_model()._default_manager
    user = users.filter(**{get_user_model().USERNAME_FIELD: name}).first()
    if user is None:
        raise UnknownAgent(
            f"there is no user {name!r}; a service account is named {SERVICE}NAME"
        )
    return of_user(user)


def of_user(user: AbstractBaseUser) -> Agent:
    """The user, who must have been saved, as an agent; made one where they are none yet."""
    if user.pk is None:
        raise ValueError(f"{user!r} is no user who could be an agent")
    agent, _ = Agent.objects.select_related("user").get_or_create(user_id=user.pk)
    return agent


def add(name: str, *, owner: AbstractBaseUser | None = None) -> Agent:
    """Make a service account. Raises InvalidTask for a name that it cannot have, and AgentExists."""
    name = checked_name(name)
    try:
        with transaction.atomic():
            return Agent.objects.create(
                name=name, owner_id=owner.pk if owner is not None else None
            )
    except IntegrityError:
        raise AgentExists(
            f"there is a service account {SERVICE}{name} already"
        ) from None


def checked_name(name: str) -> str:
    """The name, if a service account can have it; else raises InvalidTask."""
    if not _NAME.fullmatch(name) or len(name) > NAME_MAX_LENGTH:
        raise InvalidTask(
            f"name {name!r}: letters, digits and . _ + @ - are accepted, the first a letter or digit, "
            f"at most {NAME_MAX_LENGTH}"
        )
    return name


def switch(agent: Agent, *, enabled: bool) -> Agent:
    """Let the agent act, or not any more. What it holds stays its own until a deadline takes it."""
    Agent.objects.filter(pk=agent.pk).update(enabled=enabled)
    agent.enabled = enabled
    return agent


def people(agent: Agent) -> list[AbstractBaseUser]:
    """Who is told what concerns the agent: its user, or the owner of the service account, or every admin."""
    return owner_or_admins(behind(agent))


def behind(agent: Agent) -> AbstractBaseUser | None:
    """The agent's user, or the owner of the service account, where it has one."""
    return agent.user if agent.user is not None else agent.owner
