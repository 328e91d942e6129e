"""Workspaces in every condition, with long and hostile names: what the pages must be able to show."""

from __future__ import annotations

import datetime as dt

from django.utils import timezone

from tests.workspaces.factories import (
    ArchiveFactory,
    ConversationFactory,
    LedgerEntryFactory,
    UserFactory,
    WorkspaceFactory,
    WorktreeFactory,
)
from workspaces import attachments
from workspaces.models import Workspace, WorkspaceHost, Worktree, WorktreeArchive
from workspaces.pruning.contents import Contents, Found

HOSTILE = "<script>alert(1)</script>\u202egnp.exe"
LONG = "x" * 180

CONTENTS = Contents(
    commits=Found(
        3, ("3f2a91c Make the greeting friendlier", "9ab01de " + "y" * 60, "c")
    ),
    merged=1,
    changed=Found(2, ("src/app.py", "z" * 79)),
    untracked=Found(27, tuple(f"notes/{n}.txt" for n in range(20))),
    ignored=Found(1, (".env",)),
    recreatable=Found(2, ("node_modules/", ".venv/")),
    nested=Found(1, ("vendor/thing/",)),
    stashes=Found(1, ("stash@{0}: WIP on acw/work",)),
    operations=("merge",),
    size_bytes=1_234_567_890,
    recreatable_bytes=1_100_000_000,
)


def fill() -> tuple[Workspace, Worktree, WorktreeArchive]:
    """Rows for every page; a workspace, a worktree and an archive that have much to show."""
    now = timezone.now()
    hour, day = dt.timedelta(hours=1), dt.timedelta(days=1)
    planted = {
        "where": "config",
        "key": "core.sshcommand",
        "value": "sh -c 'curl " + "h" * 150 + "'",
        "digest": "0" * 64,
    }
    shop: Workspace = WorkspaceFactory(
        name="shop",
        owner=UserFactory(username="grace"),
        url="git@git.example:team/" + "p" * 90 + ".git",
        last_fetched_at=now - 3 * hour,
        next_fetch_at=now + 5 * hour,
        fetch_problem="network",
        fetch_failures=7,
        failing_since=now - 2 * hour,
        last_fetch_error="fatal: unable to access: Could not resolve host " + HOSTILE,
        tampered_config=[planted, {**planted, "key": "url." + "k" * 80 + ".insteadof"}],
        tampered_since=now - hour,
        approved_config=[planted],
        size_bytes=7_234_567_890,
        sized_at=now - hour,
        maintained_at=now - 9 * hour,
        maintenance_error="error: object file is empty\nfatal: loose object is corrupt",
    )
    WorkspaceFactory(
        name="w" * 100, state="cloning", clone_progress="Receiving objects: 40%"
    )
    WorkspaceFactory(name="mill", last_fetched_at=now, next_fetch_at=now + 5 * hour)
    WorkspaceFactory(name="gone", state="failed", last_fetch_error="no such repository")
    held: Worktree = WorktreeFactory(
        workspace=shop,
        branch="acw/" + LONG,
        held_by="conversation-17-" + "h" * 150,
        held_since=now - 2 * hour,
        heartbeat_at=now - hour,
        lease_expires_at=now + 22 * hour,
        last_held_by="conversation-17",
        fencing_no=12,
        size_bytes=123_456_789,
        sized_at=now - hour,
    )
    WorktreeFactory(workspace=shop, branch=HOSTILE, last_used_at=now - 28 * day)
    WorktreeFactory(
        workspace=shop,
        branch="acw/kept",
        last_used_at=now - 40 * day,
        prune_warning_at=now - 12 * day,
        prune_blocked_at=now - 9 * day,
        prune_blocked_reason="archive too large: 3.4 GiB, more than ACW_ARCHIVE_MAX_SIZE, "
        + LONG,
    )
    WorktreeFactory(workspace=shop, branch="acw/pinned", pinned=True)
    WorktreeFactory(
        workspace=shop,
        branch="acw/odd",
        state=Worktree.State.QUARANTINED,
        state_reason="its directory belongs to another repository; see .stray/12",
    )
    archive: WorktreeArchive = ArchiveFactory(
        workspace=shop,
        branch="acw/" + LONG,
        contents=CONTENTS.as_data(),
        size_bytes=134_567_890,
        entries=10_155,
        verified_at=now,
        expires_at=now + 90 * day,
        commit_sha="c" * 40,
        manifest_digest="d" * 64,
        last_held_by="conversation-17",
        conversation_ids=[1, 2, 3],
    )
    ArchiveFactory(workspace=shop, state=WorktreeArchive.State.EXPIRED, expires_at=now)
    for action in ("pruned", "restored", "quarantined"):
        LedgerEntryFactory(
            action=action,
            workspace="shop",
            actor="ada",
            archive_id=archive.pk,
            branch="acw/" + LONG,
            path="/srv/acw/data/workspaces/shop/worktrees/" + LONG,
            commit_sha="c" * 40,
            manifest_digest="d" * 64,
            verified="10,155 entries are as on the disk, 12 of them read again",
            data={"files": ["a" * 200, HOSTILE]},
        )
    WorkspaceHost.objects.create(
        host="near", looked_at=now - hour, disk_free=9 * 10**10, disk_total=10**11
    )
    WorkspaceHost.objects.create(
        host="far",
        mark="f" * 32,
        looked_at=now - day,
        stopped_at=now - hour,
        stopped_reason=f"/srv/{LONG} is empty: is the disk mounted, and ACW_DATA_DIR the same?",
        disk_free=3 * 10**9,
        disk_total=10**11,
        found={
            "aside": {"shop": 12, "w" * 100: 1},
            "unknown": [LONG, HOSTILE],
            "failed": ["shop: it stays until nobody works in it: process 12 " + LONG],
        },
    )
    conversation = ConversationFactory(title="Make " + "t" * 150, owner=shop.owner)
    attachments.attach(conversation, name="a" * 120 + ".txt", content=b"hello")
    return shop, held, archive
