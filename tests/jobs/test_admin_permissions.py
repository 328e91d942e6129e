from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import RequestFactory

from jobs.admin_permissions import OnlyRead
from jobs.models import Attempt, Job


class Rows(OnlyRead, admin.ModelAdmin[Job]):
    pass


class Inline(OnlyRead, admin.TabularInline[Attempt, Job]):
    model = Attempt


@pytest.mark.parametrize("what", ["add", "change", "delete"])
def test_even_a_superuser_only_reads(rf: RequestFactory, what: str):
    request = rf.get("/")
    request.user = User(is_superuser=True, is_active=True)
    assert Rows(Job, admin.site).has_view_permission(request)
    for shown in (Rows(Job, admin.site), Inline(Job, admin.site)):
        assert not getattr(shown, f"has_{what}_permission")(request, None)
