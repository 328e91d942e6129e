"""Whether the database has the tables that this code expects."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.executor import MigrationExecutor


def unapplied_migrations() -> list[str]:
    """The migrations that ``manage.py migrate`` would apply, as ``app.name``; [] where all is well.

    Raises Django's database errors where the database does not answer.
    """
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]
