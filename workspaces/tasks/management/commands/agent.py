"""``manage.py agent``: the service accounts that act on tasks, and who may act."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction
from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce

from jobs.command_line import actor
from jobs.tables import print_json, print_table
from notify import audit
from workspaces.owners import find_owner
from workspaces.tasks import agents
from workspaces.tasks.command_line import AgentCommand, add_json
from workspaces.tasks.models import Agent, Task
from workspaces.tasks.querysets import TaskQuerySet


class Command(AgentCommand):
    help = (
        "Make service accounts, which act on tasks without a login, list all agents, and switch them off and on. A service "
        "account goes by service:NAME, a user by the username."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(
            dest="verb", required=True, metavar="add|list|disable|enable"
        )
        adding = verbs.add_parser("add", help="make a service account; prints its name")
        adding.add_argument("name", metavar="NAME")
        adding.add_argument(
            "--owner",
            metavar="USER",
            help="who is told what concerns it (default: every admin)",
        )
        listing = verbs.add_parser(
            "list", help="service accounts, and the users who have acted on a task"
        )
        disabling = verbs.add_parser(
            "disable",
            help="let it act no more; what it holds is its own until a deadline takes it",
        )
        enabling = verbs.add_parser("enable", help="let it act again")
        for one in (disabling, enabling):
            one.add_argument(
                "name", metavar="AGENT", help="a user's name, or service:NAME"
            )
        for one in (adding, listing, disabling, enabling):
            add_json(one)

    def handle(self, *args: Any, **options: Any) -> None:
        verbs = {
            "add": self._add,
            "list": self._list,
            "disable": self._switch,
            "enable": self._switch,
        }
        verbs[options["verb"]](options)

    def _add(self, options: dict[str, Any]) -> None:
        owner = find_owner(options["owner"])
        with transaction.atomic():
            agent = agents.add(options["name"], owner=owner)
            audit.record(
                actor(),
                "agent.add",
                target=f"agent:{agent}",
                data={"owner": owner.get_username() if owner is not None else None},
            )
        self._say(agent, options, line=str(agent))

    def _switch(self, options: dict[str, Any]) -> None:
        enabled = options["verb"] == "enable"
        with transaction.atomic():
            agent = agents.find(options["name"])
            changed = agent.enabled != enabled
            if changed:
                agents.switch(agent, enabled=enabled)
                audit.record(
                    actor(), f"agent.{options['verb']}", target=f"agent:{agent}"
                )
        already = "" if changed else " already"
        self._say(agent, options, line=f"{agent}: {options['verb']}d{already}")

    def _say(self, agent: Agent, options: dict[str, Any], *, line: str) -> None:
        if options["json"]:
            said = {"ok": True, "agent": str(agent), "enabled": agent.enabled}
            print_json(self.stdout, said)
        else:
            self.stdout.write(line)

    def _list(self, options: dict[str, Any]) -> None:
        rows = [_as_json(agent) for agent in _agents()]
        if options["json"]:
            print_json(self.stdout, rows)
            return
        headers = ("AGENT", "KIND", "MAY ACT", "OWNER", "HOLDS", "PUBLISHED, LIVE")
        print_table(
            self.stdout,
            headers,
            [tuple(row.values()) for row in rows],
            empty="no agents; `agent add NAME` makes a service account",
        )


def _agents() -> list[Agent]:
    # Counted apart: joined, whoever publishes and holds much would be multiplied.
    return list(
        Agent.objects.select_related("user", "owner").annotate(
            holds=_count(Task.objects.filter(holder=OuterRef("pk")), "holder"),
            live=_count(
                Task.objects.live().filter(publisher=OuterRef("pk")), "publisher"
            ),
        )
    )


def _count(tasks: TaskQuerySet, by: str) -> Coalesce:
    counted = tasks.order_by().values(by).annotate(n=Count("pk")).values("n")
    return Coalesce(Subquery(counted), 0)


def _as_json(agent: Any) -> dict[str, Any]:
    return {
        "agent": str(agent),
        "kind": "user" if agent.user is not None else "service account",
        "may_act": agent.may_act,
        "owner": agent.owner.get_username() if agent.owner is not None else None,
        "holds": agent.holds,
        "published_live": agent.live,
    }
