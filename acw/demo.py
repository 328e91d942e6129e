"""Something to look at on the first run: a small real repository, and work on it.

It is made with what operators and agents use, and looks like what they make.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from workspaces import attachments, clones, git, holds
from workspaces.models import Conversation, Workspace
from workspaces.tasks import actions, agents
from workspaces.tasks.actors import acting
from workspaces.tasks.models import Agent
from workspaces.tasks.states import Template

NAME = "demo"
_BRANCHES = ("demo/greeting", "demo/notes")
_CONVERSATION = "Make the greeting friendlier"
_AGENT = "demo"
# One commit each, in this order.
_FILES = {
    "README.md": "# Demo\n\nA small repository for trying out ACW.\n",
    "greet.py": 'print("Hello from the demo.")\n',
    "notes.md": "Push a commit: the next fetch brings it.\n",
}


def directory() -> Path:
    """Where the remote is, `remote.git`, and `checkout`, to commit and push from."""
    path: Path = settings.ACW_DATA_DIR / NAME
    return path


def build(*, owner: AbstractBaseUser) -> bool:
    """Build the demo, or the rest of it, unless it is there or others' workspaces are.

    Returns whether it did. Raises WorkspacesError.
    """
    if Workspace.objects.exclude(name=NAME).exists():
        return False
    # What is made last tells that all of it was made.
    if Conversation.objects.filter(title=_CONVERSATION).exists():
        return False
    workspace = Workspace.objects.filter(name=NAME).first()
    if workspace is None:
        workspace = clones.add_workspace(NAME, _remote().as_uri(), owner=owner)
    for branch in _BRANCHES:
        if not workspace.worktrees.filter(branch=branch).exists():
            # Released at once: a workspace in use is not fetched.
            holds.release(holds.acquire(workspace, branch=branch, holder=NAME).pk)
    with transaction.atomic():
        conversation = Conversation.objects.create(
            title=_CONVERSATION,
            owner_id=owner.pk,
            worktree=workspace.worktrees.get(branch=_BRANCHES[0]),
        )
        attachments.attach(
            conversation,
            name="wish.txt",
            content=b"It should say good morning.\n",
            content_type="text/plain",
        )
        _publish_tasks(owner, workspace)
    return True


def _publish_tasks(owner: AbstractBaseUser, workspace: Workspace) -> None:
    """A task that the service account can take, and a contest that it can enter."""
    if not Agent.objects.filter(name=_AGENT).exists():
        agents.add(_AGENT, owner=owner)
    publisher = acting(agents.of_user(owner))
    actions.publish(
        by=publisher,
        title="Make the greeting friendlier",
        description="It should say good morning.",
        workspace=workspace,
        checklist=["greet.py says good morning", "The change is pushed"],
    )
    actions.publish(
        by=publisher,
        title="Find a name for the demo",
        template=Template.CONTEST,
    )


def _remote() -> Path:
    """Return the bare repository, made now unless it is there."""
    remote, checkout = directory() / "remote.git", directory() / "checkout"
    if remote.exists():
        return remote
    draft = directory() / "draft.git"
    for leftover in (draft, checkout):
        shutil.rmtree(leftover, ignore_errors=True)
    checkout.mkdir(parents=True)
    git.run(["init", "--quiet", "--bare", "--", str(draft)])
    git.run(["init", "--quiet"], cwd=checkout)
    # Kept in the checkout, for the commits that its user makes.
    git.run(["config", "user.name", "ACW demo"], cwd=checkout)
    git.run(["config", "user.email", "demo@example.com"], cwd=checkout)
    for name, content in _FILES.items():
        (checkout / name).write_text(content)
        git.run(["add", "--", name], cwd=checkout)
        git.run(["commit", "--quiet", "--message", f"Add {name}"], cwd=checkout)
    git.run(["remote", "add", "origin", str(draft)], cwd=checkout)
    git.run(["push", "--quiet", "--set-upstream", "origin", "main"], cwd=checkout)
    draft.rename(remote)
    git.run(["remote", "set-url", "origin", str(remote)], cwd=checkout)
    return remote
