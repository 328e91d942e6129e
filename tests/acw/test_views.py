from __future__ import annotations

import pytest
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client, override_settings

from tests.jobs.factories import WorkerProcessFactory


def test_healthz_asks_no_database(client: Client):
    response = client.get("/healthz")
    assert (response.status_code, response.content) == (200, b"ok\n")


@pytest.mark.django_db
def test_readyz_is_ok_with_every_migration(client: Client):
    response = client.get("/readyz")
    assert (response.status_code, response.content) == (200, b"ok\n")


@pytest.mark.django_db
def test_readyz_says_how_many_migrations_are_missing(client: Client):
    latest = (
        MigrationRecorder(connection).migration_qs.filter(app="sessions").latest("id")
    )
    latest.delete()
    response = client.get("/readyz")
    assert (response.status_code, response.content) == (
        503,
        b"1 migrations are not applied\n",
    )


@pytest.mark.django_db
def test_readyz_names_the_worker_of_this_host_that_has_stalled_and_in_what(
    client: Client,
):
    WorkerProcessFactory(name="w1", stalled=["acw-heartbeat", "acw-listener"])
    WorkerProcessFactory(name="w2")
    response = client.get("/readyz")
    assert (response.status_code, response.content) == (
        503,
        b"worker w1: no progress in acw-heartbeat, acw-listener\n",
    )


@pytest.mark.django_db
@pytest.mark.parametrize("other", [{"lost": True}, {"host": "another"}])
def test_readyz_asks_of_this_hosts_living_workers_only(
    client: Client, other: dict[str, object]
):
    WorkerProcessFactory(stalled=["acw-listener"], **other)
    assert client.get("/readyz").status_code == 200


def test_readyz_without_a_database_gives_no_details(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    def refuse() -> list[str]:
        raise OperationalError('connection to "db.example" as "ann" failed')

    monkeypatch.setattr("acw.views.unapplied_migrations", refuse)
    response = client.get("/readyz")
    assert (response.status_code, response.content) == (
        503,
        b"the database cannot be reached\n",
    )


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_they_only_tell(client: Client, path: str):
    assert client.post(path).status_code == 405


@override_settings(SECURE_SSL_REDIRECT=True)
def test_a_load_balancer_may_ask_over_plain_http(client: Client):
    assert client.get("/healthz").status_code == 200
    assert client.get("/admin/").status_code == 301
