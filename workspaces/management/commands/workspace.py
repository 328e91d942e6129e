"""``manage.py workspace``: the workspaces of this installation, and the clones of this host."""

from __future__ import annotations

from workspaces.commands.adding import ADD
from workspaces.commands.approving import APPROVE
from workspaces.commands.fetching import FETCH, SET_URL
from workspaces.commands.removing import REMOVE
from workspaces.commands.showing import LIST, SHOW
from workspaces.commands.upkeep import MAINTAIN, RECONCILE
from workspaces.commands.verb import WorkspacesCommand

VERBS = (ADD, LIST, SHOW, FETCH, SET_URL, APPROVE, REMOVE, RECONCILE, MAINTAIN)


class Command(WorkspacesCommand):
    help = "Add a clone of a git repository, list, fetch and remove them."
    verbs = VERBS
