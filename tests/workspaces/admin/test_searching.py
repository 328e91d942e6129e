from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.workspaces.factories import (
    ArchiveFactory,
    LedgerEntryFactory,
    WorkspaceFactory,
    WorktreeFactory,
)

pytestmark = pytest.mark.django_db

COLUMNS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "worktree": (WorktreeFactory, "id", "branch"),
    "worktreearchive": (ArchiveFactory, "worktree_id", "branch"),
    "ledgerentry": (LedgerEntryFactory, "worktree_id", "branch"),
    "workspace": (WorkspaceFactory, "id", "name"),
}


@pytest.mark.parametrize("page", COLUMNS)
def test_a_number_is_an_id_where_there_is_one_and_a_text_otherwise(
    admin_client: Client, page: str
):
    make, key, name = COLUMNS[page]
    meant = make(**{key: 9042, name: "meant"})
    named = make(**{name: "9042"})
    digits = make(**{name: "2024"})

    def found(term: str) -> set[int]:
        url = reverse(f"admin:workspaces_{page}_changelist")
        listed = admin_client.get(url, {"q": term}).context["cl"].result_list
        return {row.pk for row in listed}

    assert found(" 9042 ") == {meant.pk}
    assert found("2024") == {digits.pk}
    assert found("9" * 5000) == set()
    assert found("²") == set()
    assert {meant.pk, named.pk, digits.pk} <= found(" ")
