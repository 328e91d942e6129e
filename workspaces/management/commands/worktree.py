"""``manage.py worktree``: acquire, release and list worktrees, for agents' scripts and operators."""

from __future__ import annotations

from workspaces.commands.auditing import AUDIT
from workspaces.commands.holding import ACQUIRE, HEARTBEAT, RELEASE
from workspaces.commands.keeping import ARCHIVE, KEEP, PIN, UNPIN
from workspaces.commands.ledger import LEDGER
from workspaces.commands.listing import LIST
from workspaces.commands.looking import SHOW
from workspaces.commands.restoring import ARCHIVES, RESTORE
from workspaces.commands.verb import WorkspacesCommand

VERBS = (
    ACQUIRE,
    HEARTBEAT,
    RELEASE,
    LIST,
    SHOW,
    RESTORE,
    ARCHIVES,
    KEEP,
    PIN,
    UNPIN,
    ARCHIVE,
    LEDGER,
    AUDIT,
)


class Command(WorkspacesCommand):
    help = "Acquire a worktree of a workspace, let it go, list them."
    verbs = VERBS
