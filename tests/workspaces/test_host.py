from __future__ import annotations

import pytest
from django.db import IntegrityError

from workspaces.models import WorkspaceHost

pytestmark = pytest.mark.django_db


def test_a_host_has_one_row():
    assert str(WorkspaceHost.objects.create(host="one")) == "one"
    with pytest.raises(IntegrityError):
        WorkspaceHost.objects.create(host="one")
