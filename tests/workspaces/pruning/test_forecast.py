from __future__ import annotations

import datetime as dt
import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import Settings

from tests.workspaces.conftest import make_idle
from tests.workspaces.factories import WorktreeFactory
from tests.workspaces.pruning.test_contents import everything_in
from tests.workspaces.remote import commit
from workspaces import holds
from workspaces.models import Worktree
from workspaces.prune import Outcome, prune_worktree
from workspaces.pruning import removal
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def dry_run() -> list[str]:
    stdout = io.StringIO()
    call_command("runners", "run", "worktree_prune", "--dry-run", stdout=stdout)
    return stdout.getvalue().splitlines()


def rows() -> dict[str, list[tuple[object, ...]]]:
    """Everything in the database."""
    found = {}
    with connection.cursor() as cursor:
        for model in apps.get_models():
            if not model._meta.proxy:
                cursor.execute(f'SELECT * FROM "{model._meta.db_table}"')
                found[model._meta.db_table] = sorted(cursor.fetchall(), key=str)
    return found


def disk(directory: Path) -> list[str]:
    """Every name, time and size below the directory."""
    listed = ["find", str(directory), "-printf", "%p %T@ %C@ %i %s\n"]
    done = subprocess.run(listed, capture_output=True, text=True, check=True)
    return sorted(done.stdout.splitlines())


def test_it_says_what_would_happen_and_changes_nothing(
    worktree: Worktree, path: Path, repository: Repository, data_dir: Path
):
    everything_in(path)
    make_idle(worktree, days=31)
    soon = holds.acquire(worktree.workspace, branch="acw/soon", holder="agent")
    commit(Path(soon.path))
    make_idle(holds.release(soon.pk), days=28)
    before = rows(), disk(data_dir)
    said = dry_run()
    assert (rows(), disk(data_dir)) == before
    warned, pruned = said
    assert warned.startswith(f"worktree {soon.pk} (acw/soon) of demo on test-host: ")
    assert "would be warned of; it has 1 commit that is not pushed (" in warned
    assert f"worktree {worktree.pk} " in pruned
    assert "would be archived and removed; it has 1 uncommitted change" not in pruned
    assert "would be archived and removed; it has 2 uncommitted changes" in pruned
    assert "it takes " in pruned
    assert pruned.endswith("left out: node_modules/")
    assert prune_worktree(worktree.pk) is Outcome.PRUNED


def test_what_would_keep_one_is_what_keeps_it(
    worktree: Worktree, path: Path, settings: Settings
):
    settings.ACW_ARCHIVE_MAX_SIZE = 1024
    (path / "large").write_bytes(os.urandom(20_000))
    make_idle(worktree, days=31)
    (said,) = dry_run()
    assert "would be kept: it has " in said
    assert "ACW_ARCHIVE_MAX_SIZE" in said
    assert prune_worktree(worktree.pk) is Outcome.BLOCKED


def test_why_others_are_kept(settings: Settings):
    settings.JOBS_WORKTREE_PRUNE_REQUIRE_WARNING = True
    changes: dict[str, dict[str, object]] = {
        "held by 'agent'": {"held_by": "agent", "held_since": timezone.now()},
        "pinned": {"pinned": True},
        "until 2100-01-01": {"kept_until": "2100-01-01T00:00Z"},
        "quarantined": {"state": "quarantined"},
        "it was not warned of 72h ago": {"prune_warning_at": Now()},
        "is pruning: would be finished": {"state": "pruning"},
    }
    for number, change in enumerate(changes.values()):
        make_idle(WorktreeFactory(branch=f"b{number}", **change), days=31)
    said = dry_run()
    for number, why in enumerate(changes):
        (line,) = (line for line in said if f"(b{number}) " in line)
        assert why in line


def test_one_that_is_gone_used_or_half_pruned_is_said_to_be_that_once(
    worktree: Worktree, path: Path, admin: Path
):
    def said() -> str:
        (line,) = dry_run()
        return line.partition(": ")[2]

    make_idle(worktree, days=28)
    Worktree.objects.update(use_seen_at=Now() - dt.timedelta(hours=1))
    (path / "new").touch()
    assert said() == "would be kept: something was done in it since it was let go of"
    make_idle(worktree, days=28)
    shutil.rmtree(path)
    assert said() == "would be warned of; its directory is not on the disk"
    make_idle(worktree, days=31)
    shutil.rmtree(admin)
    assert said().endswith("nothing of it is left on the disk")
    Worktree.objects.update(state=Worktree.State.PRUNING)
    assert said().startswith("is pruning: would be finished")


def test_what_lies_on_another_host_is_seen_there_only():
    make_idle(WorktreeFactory(workspace__host="elsewhere"), days=31)
    (said,) = dry_run()
    assert "can be seen on elsewhere only" in said


def test_one_that_may_not_be_touched_would_be_kept_as_it_is(
    worktree: Worktree, path: Path, tmp_path: Path
):
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    make_idle(worktree, days=31)
    (said,) = dry_run()
    assert "would be kept: what is in it could not be looked at: " in said
    assert "is a symbolic link" in said
    assert prune_worktree(worktree.pk) is Outcome.BLOCKED


def test_one_that_cannot_be_looked_at_does_not_hide_the_others(
    worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    make_idle(worktree, days=31)
    make_idle(WorktreeFactory(workspace__host="elsewhere"), days=31)
    monkeypatch.setattr(removal, "check", refused)
    first, second = dry_run()
    assert "cannot be said: [Errno 13] Permission denied" in first
    assert "can be seen on elsewhere only" in second


def test_no_name_moves_the_cursor_of_a_terminal():
    make_idle(WorktreeFactory(branch="acw/\u202e\x9b2J"), days=31)
    (said,) = dry_run()
    assert "(acw/\\u202e\\x9b2J)" in said


def test_one_that_was_warned_of_and_is_kept_for_a_while_yet_says_until_when():
    worktree = WorktreeFactory()
    make_idle(worktree, days=31)
    until = timezone.now() + dt.timedelta(days=2)
    Worktree.objects.update(kept_until=until, prune_warning_at=Now())
    (said,) = dry_run()
    assert said.endswith(f"would be kept: until {until:%Y-%m-%d %H:%M %Z}")


def test_one_that_is_in_use_would_be_kept(worktree: Worktree, path: Path):
    Worktree.objects.update(use_seen_at=Now() - dt.timedelta(hours=1))
    (path / "new").touch()
    (said,) = dry_run()
    assert "would be kept: something was done in it since it was let go of" in said


def test_where_nothing_would_happen_that_is_said():
    (said,) = dry_run()
    assert said.startswith("nothing would be")
