from __future__ import annotations

import datetime as dt
import shutil
from collections import namedtuple
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from jobs.doctor import Finding, Level, probe_names
from tests.workspaces.factories import (
    HOST,
    AttachmentFactory,
    WorkspaceFactory,
    WorktreeFactory,
)
from workspaces import probes
from workspaces.models import WorkspaceHost, WorktreeArchive
from workspaces.upkeep.places import GONE

pytestmark = pytest.mark.django_db

Usage = namedtuple("Usage", "total used free")
Probe = Callable[[], Iterable[Finding]]


def long_ago() -> Any:
    return Now() - dt.timedelta(days=2)


def test_doctor_asks():
    assert {"workspaces", "worktrees", "disks", "attachments"} <= set(probe_names())


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk of whoever runs this may be nearly full."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(100, 50, 50))


@pytest.mark.parametrize("probe", [probes.workspaces, probes.worktrees, probes.disks])
def test_what_is_well_is_said_to_be(probe: Probe):
    WorktreeFactory()
    WorkspaceHost.objects.create(host=HOST)
    assert [finding.level for finding in probe()] == [Level.OK]


@pytest.mark.parametrize(
    ("columns", "level", "said"),
    [
        ({"state": "failed", "clone_progress": GONE}, Level.ERROR, "are gone"),
        ({"state": "failed"}, Level.WARNING, "could not be cloned"),
        ({"state": "cloning", "created_at": long_ago()}, Level.WARNING, "waiting"),
        ({"failing_since": long_ago()}, Level.WARNING, "cannot be fetched"),
        ({"tampered_since": long_ago()}, Level.ERROR, "nobody approved"),
        ({"maintenance_error": "x"}, Level.WARNING, "could not be maintained"),
    ],
    ids=["gone", "not_cloned", "stuck", "failing", "tampered", "not_maintained"],
)
def test_a_workspace_that_is_not_well_is_named(
    columns: dict[str, Any], level: Level, said: str
):
    WorkspaceFactory(name="ill", **columns)
    (finding,) = probes.workspaces()
    assert finding.level is level
    assert said in finding.message
    assert "ill" in finding.message


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"state": "missing"}, "are missing"),
        ({"state": "quarantined"}, "are out of use"),
        (
            {
                "held_by": "agent",
                "held_since": long_ago(),
                "lease_expires_at": long_ago(),
            },
            "are held",
        ),
    ],
    ids=["missing", "quarantined", "held"],
)
def test_a_worktree_that_is_not_well_is_named(columns: dict[str, Any], said: str):
    WorktreeFactory(branch="ill", **columns)
    (finding,) = probes.worktrees()
    assert finding.level is Level.WARNING
    assert said in finding.message
    assert "ill" in finding.message


def test_an_archive_that_was_begun_and_left_is_named():
    WorktreeArchive.objects.create(
        workspace=WorkspaceFactory(), worktree_id=1, branch="ill", created_at=long_ago()
    )
    (finding,) = probes.worktrees()
    assert "not verified" in finding.message


def test_a_host_whose_reconciliation_has_stopped_is_named_with_the_reason():
    WorkspaceHost.objects.create(
        host="far", stopped_at=long_ago(), stopped_reason="the disk is away"
    )
    (finding,) = probes.disks()
    assert finding.level is Level.OK  # nothing is there any more
    WorkspaceFactory(host="far")
    (finding,) = probes.disks()
    assert finding.level is Level.ERROR
    assert finding.message.startswith("far:")
    assert finding.message.endswith("the disk is away")


def test_what_was_put_aside_or_is_nobodys_is_named():
    found = {"aside": {"shop": 2}, "unknown": ["odd"], "failed": ["shop: busy"]}
    WorkspaceHost.objects.create(host="far", found=found)
    WorkspaceFactory(host="far")
    messages = [finding.message for finding in probes.disks()]
    assert messages == [
        "far: something was put aside in shop (2)",
        "far: unknown: odd",
        "far: failed: shop: busy",
    ]


def test_a_disk_that_is_nearly_full_is_named_here_and_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(100, 96, 4))
    WorkspaceHost.objects.create(host="far", disk_total=100, disk_free=5)
    WorkspaceHost.objects.create(host="full", disk_total=100, disk_free=1)
    for host in ("far", "full"):
        WorkspaceFactory(host=host)
    named = [finding.message.partition(":")[0] for finding in probes.disks()]
    assert named == ["full", HOST]


def test_attachments_that_have_lost_their_bytes_are_named():
    AttachmentFactory(name="kept")
    assert [finding.level for finding in probes.attachments()] == [Level.OK]
    AttachmentFactory(name="lost", missing_at=long_ago())
    (finding,) = probes.attachments()
    assert finding.level is Level.WARNING
    assert "1 attachments" in finding.message
    assert "lost" in finding.message


def test_a_workspace_of_which_nothing_can_be_acquired_for_its_size_is_named(
    settings: Settings,
):
    WorkspaceFactory(name="large", size_bytes=10**9)
    settings.ACW_WORKSPACE_HARD_LIMIT = 10**9
    assert [finding.level for finding in probes.workspaces()] == [Level.OK]
    settings.ACW_WORKSPACE_HARD_LIMIT = 10**9 - 1
    (finding,) = probes.workspaces()
    assert "ACW_WORKSPACE_HARD_LIMIT" in finding.message
    assert "large" in finding.message
