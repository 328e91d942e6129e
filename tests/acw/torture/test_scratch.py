from __future__ import annotations

import psycopg

from acw.torture.scratch import Scratch


def test_it_has_the_products_tables_and_the_runs_own(
    scratch: Scratch, connection: psycopg.Connection
):
    found = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = %s", [scratch.schema]
    )
    names = {name for (name,) in found}
    assert {"jobs", "job_attempts", "torture_transitions", "torture_produced"} <= names


def test_its_workers_sessions_have_a_name_that_the_server_does_not_cut(
    scratch: Scratch,
):
    url = scratch.env(application_name=scratch.worker_sessions)["DATABASE_URL"]
    with psycopg.connect(url) as connection:
        name = connection.execute("SELECT current_setting('application_name')")
        assert name.fetchone() == (scratch.worker_sessions,)
