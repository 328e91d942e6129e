from __future__ import annotations

import pytest
from django.contrib import admin
from django.db.models import Model
from django.test import RequestFactory
from django.utils import timezone

from tests.workspaces.factories import WorkspaceFactory, WorktreeFactory
from workspaces.admin.filters import HeldFilter, HostFilter, OwnHostFilter
from workspaces.models import Workspace, Worktree

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("of", "model"), [(HostFilter, Worktree), (OwnHostFilter, Workspace)]
)
def test_hosts_are_offered_once_and_chosen(of: type[HostFilter], model: type[Model]):
    WorktreeFactory(workspace__host="here")
    WorktreeFactory(workspace=WorkspaceFactory(host="there"))
    WorkspaceFactory(host="here")
    model_admin = admin.site._registry[model]
    request = RequestFactory().get("/")
    chosen = of(request, {"host": ["there"]}, model, model_admin)
    assert chosen.lookup_choices == [("here", "here"), ("there", "there")]
    assert chosen.queryset(request, model._default_manager.all()).count() == 1
    nobodys = of(request, {"host": ["a\0b"]}, model, model_admin)
    assert nobodys.queryset(request, model._default_manager.all()).count() == 0
    unchosen = of(request, {}, model, model_admin)
    rows = model._default_manager.all()
    assert unchosen.queryset(request, rows).count() == rows.count()


def test_a_column_is_asked_for_in_words():
    held = WorktreeFactory(held_by="agent", held_since=timezone.now())
    free = WorktreeFactory()
    model_admin = admin.site._registry[Worktree]
    request = RequestFactory().get("/")
    for value, rows in (("yes", [held]), ("no", [free]), ("x", [held, free])):
        chosen = HeldFilter(request, {"held": [value]}, Worktree, model_admin)
        found = chosen.queryset(request, Worktree.objects.order_by("pk"))
        assert list(found) == rows
    assert chosen.lookup_choices == [("yes", "held"), ("no", "free")]
