"""What an operator does with workspaces and worktrees, in a real browser."""

from __future__ import annotations

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from jobs.models import Job
from jobs.testing import wait_until
from tests.driving import press, sideways, told
from tests.workspaces.admin.gallery import fill
from tests.workspaces.factories import WorktreeFactory
from tests.workspaces.remote import git
from workspaces import seal
from workspaces.exceptions import ConfigTampered
from workspaces.models import (
    Attachment,
    Conversation,
    LedgerEntry,
    Workspace,
    WorkspaceHost,
    Worktree,
)
from workspaces.repository import Repository

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

WIDE, NARROW = (1280, 1000), (420, 900)


def test_a_worktree_is_pinned_and_others_are_archived(
    site: str, browser: webdriver.Chrome
):
    pinned, *others = WorktreeFactory.create_batch(3)
    browser.get(f"{site}/admin/workspaces/worktree/{pinned.pk}/change/")
    press(browser, "Pin")
    assert told(browser) == "1 pinned"
    assert Worktree.objects.get(pinned=True) == pinned

    browser.get(f"{site}/admin/workspaces/worktree/?pinned__exact=0")
    browser.find_element(By.ID, "action-toggle").click()
    Select(browser.find_element(By.NAME, "action")).select_by_value("archive")
    browser.find_element(By.NAME, "index").click()
    assert told(browser) == "2 to be archived by the host that has them"
    archived = Job.objects.filter(type="worktree.archive")
    assert {job.ref_id for job in archived} == {str(row.pk) for row in others}


def test_what_was_planted_is_looked_at_and_approved(
    site: str, browser: webdriver.Chrome, workspace: Workspace, repository: Repository
):
    git("config", "core.sshCommand", "run evil", cwd=repository.path)
    with pytest.raises(ConfigTampered):
        seal.check(workspace, repository)
    browser.get(f"{site}/admin/workspaces/workspace/{workspace.pk}/change/")
    press(browser, "Approve the configuration…")
    found = wait_until(
        lambda: browser.find_elements(By.CSS_SELECTOR, ".operation table.keys"),
        what="the question",
    )
    assert "run evil" in found[0].text
    press(browser, "Approve exactly these")
    assert told(browser) == "1 key approved."
    seal.check(Workspace.objects.get(), repository)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_pages_are_read_without_scrolling_sideways(
    site: str, browser: webdriver.Chrome, size: tuple[int, int]
):
    workspace, worktree, archive = fill()
    entry = LedgerEntry.objects.all()[0]
    browser.set_window_size(*size)
    try:
        for path in (
            f"workspace/{workspace.pk}/change/",
            f"worktree/{worktree.pk}/change/",
            f"worktreearchive/{archive.pk}/change/",
            f"ledgerentry/{entry.pk}/change/",
            f"conversation/{Conversation.objects.get().pk}/change/",
            f"attachment/{Attachment.objects.get().pk}/change/",
            "attachment/add/",
            f"workspacehost/{WorkspaceHost.objects.get(host='far').pk}/change/",
            "workspacehost/",
            "workspace/",
            "worktree/",
            "worktreearchive/",
            "ledgerentry/",
            "attachment/",
            "conversation/",
        ):
            browser.get(f"{site}/admin/workspaces/{path}")
            assert sideways(browser) <= 0, path
    finally:
        browser.set_window_size(*WIDE)
