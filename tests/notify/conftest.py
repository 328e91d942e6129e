from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from jobs import wakeup
from notify import topics
from tests.notify import sinks
from tests.notify.factories import TOPIC
from tests.notify.sinks import Sink


@pytest.fixture(autouse=True, scope="session")
def notifier_closed_before_the_database_goes(django_db_setup: None) -> Iterator[None]:
    yield
    wakeup.close(timeout=5)


@pytest.fixture(autouse=True)
def defined_topics() -> Iterator[None]:
    """One topic of the tests' own; whatever a test defines is gone after it."""
    before = dict(topics._topics)
    topics.define(TOPIC, title="Thing happened", description="For tests.")
    yield
    topics._topics.clear()
    topics._topics.update(before)


@pytest.fixture
def webhooks_on(settings: Settings) -> Settings:
    settings.NOTIFY_WEBHOOK_ENABLED = True
    return settings


@pytest.fixture
def sink() -> Iterator[Sink]:
    """A receiver that answers 204, until a test has it behave otherwise."""
    with Sink(sinks.answer(204)) as running:
        yield running
