"""``manage.py worktree ledger``."""

from __future__ import annotations

import json

import pytest

from tests.workspaces.commands.calling import worktree as run
from tests.workspaces.factories import LedgerEntryFactory

pytestmark = pytest.mark.django_db


def test_what_was_done_is_listed_newest_first():
    LedgerEntryFactory(action="pruned", worktree_id=7, verified="every byte is equal")
    LedgerEntryFactory(action="restored", worktree_id=7, actor="ada\x1b[2J")
    LedgerEntryFactory(action="mended", worktree_id=8)
    actions = [line.split()[3] for line in run("ledger").splitlines()[1:]]
    assert actions == ["mended", "restored", "pruned"]
    restored, pruned = run("ledger", 7).splitlines()[1:]
    assert "ada\\x1b[2J" in restored
    assert "every byte is equal" in pruned


def test_scripts_are_told_all_of_an_entry():
    made = LedgerEntryFactory(
        worktree_id=7, archive_id=3, manifest_digest="d" * 64, data={"fencing_no": 2}
    )
    LedgerEntryFactory(worktree_id=8)
    (said,) = json.loads(run("ledger", 7, "--json"))
    assert said["id"] == made.pk
    assert (said["action"], said["worktree_id"], said["archive_id"]) == ("pruned", 7, 3)
    assert said["manifest_digest"] == "d" * 64
    assert said["data"] == {"fencing_no": 2}


def test_where_nothing_was_done_it_says_so():
    assert run("ledger") == "the ledger is empty\n"
    assert run("ledger", 7) == "the ledger has nothing of worktree 7\n"
    assert run("ledger", 7, "--json") == "[]\n"
