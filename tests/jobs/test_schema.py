from __future__ import annotations

import pytest
from django.db.migrations.recorder import MigrationRecorder

from jobs.schema import unapplied_migrations

pytestmark = pytest.mark.django_db


def test_a_migrated_database_lacks_nothing() -> None:
    assert unapplied_migrations() == []


def test_what_is_missing_is_named() -> None:
    MigrationRecorder.Migration.objects.filter(app="jobs").delete()
    assert "jobs.0001_initial" in unapplied_migrations()
