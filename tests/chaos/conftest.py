"""Options of ``make chaos``."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.acceptance)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full", action="store_true", help="the long runs instead of the short ones"
    )
    parser.addoption("--seed", type=int, help="what chooses the faults and the jobs")


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Whether this is ``make chaos``."""
    # The option is there where pytest was called for this directory.
    return bool(request.config.getoption("--full", default=False))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A new one, unless one is given; a run prints it first."""
    given: int | None = request.config.getoption("--seed", default=None)
    return secrets.randbelow(2**31) if given is None else given
