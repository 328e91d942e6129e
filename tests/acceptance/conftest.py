from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tests.acceptance.ledger import Ledger
from tests.acceptance.product import Process, Product
from tests.acceptance.receiver import Receiver
from tests.acceptance.remote import Remote

_TEMPLATE = f"acceptance_{uuid.uuid4().hex[:8]}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.acceptance)


def url_of(database: str) -> str:
    """The tests' server, with another database."""
    where = conninfo_to_dict(os.environ["DATABASE_URL"])
    where["dbname"] = database
    return "postgresql:///?" + "&".join(
        f"{key}={value}" for key, value in where.items()
    )


def on_server(statement: sql.Composed) -> None:
    with psycopg.connect(url_of("postgres"), autocommit=True) as connection:
        connection.execute(statement)


def create(database: str, template: str) -> None:
    on_server(
        sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
            sql.Identifier(database), sql.Identifier(template)
        )
    )


def drop(database: str) -> None:
    on_server(
        sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(
            sql.Identifier(database)
        )
    )


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database that ``migrate`` was run on, to be copied."""
    create(_TEMPLATE, "template0")
    Product(url_of(_TEMPLATE), tmp_path_factory.mktemp("migrated")).manage("migrate")
    yield _TEMPLATE
    drop(_TEMPLATE)


@pytest.fixture
def install(migrated: str, tmp_path: Path) -> Iterator[Callable[..., Product]]:
    """Makes an installation with these settings; all its processes end with the test."""
    made: list[tuple[Product, str]] = []

    def install(**settings: str) -> Product:
        database = f"acceptance_{uuid.uuid4().hex[:8]}"
        create(database, migrated)
        product = Product(url_of(database), tmp_path, settings)
        made.append((product, database))
        return product

    yield install
    for product, database in made:
        product.close()
        drop(database)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


@pytest.fixture
def resumed() -> Iterator[list[Process]]:
    """Processes that are not left suspended, or they could not be ended."""
    suspended: list[Process] = []
    yield suspended
    for process in suspended:
        process.send(signal.SIGCONT)
