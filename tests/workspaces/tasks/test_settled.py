from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, connections, transaction

from jobs.testing import PATIENCE
from tests.workspaces.tasks.market import agent, publish
from workspaces.tasks import actions, settled
from workspaces.tasks.exceptions import TasksError
from workspaces.tasks.models import TaskEvent


@contextmanager
def change_under_way(task_id: int) -> Iterator[threading.Event]:
    """Another session has done something to the task, and commits once the event that is given is set."""
    done, commit = threading.Event(), threading.Event()

    def change() -> None:
        try:
            with transaction.atomic():
                actions.take(task_id, by=agent("bob"))
                done.set()
                assert commit.wait(PATIENCE)
        finally:
            connections.close_all()

    other = threading.Thread(target=change)
    other.start()
    try:
        assert done.wait(PATIENCE)
        yield commit
    finally:
        commit.set()
        other.join(PATIENCE)


class CommitsAtTheFirstWait(threading.Event):
    """A stop that is never set; whoever waits for it lets the other session commit."""

    def __init__(self, commit: threading.Event) -> None:
        super().__init__()
        self.commit = commit
        self.waits = 0

    def wait(self, timeout: float | None = None) -> bool:
        self.waits += 1
        self.commit.set()
        return super().wait(timeout)


@pytest.mark.django_db
def test_without_events_it_is_zero():
    assert settled.last_event(threading.Event()) == 0


@pytest.mark.django_db
def test_what_this_transaction_has_written_is_there():
    publish()
    assert settled.last_event(threading.Event(), patience=0) == (
        TaskEvent.objects.latest("pk").pk
    )


@pytest.mark.django_db(transaction=True)
def test_an_earlier_id_that_is_not_committed_is_waited_for():
    task = publish()
    agent("bob")
    with change_under_way(task.pk) as commit:
        publish()  # a later id, which is committed before
        last = TaskEvent.objects.latest("pk").pk
        stop = CommitsAtTheFirstWait(commit)
        assert settled.last_event(stop) == last
        assert stop.waits >= 1
        ids = list(TaskEvent.objects.values_list("pk", flat=True))
    assert ids == [last - 2, last - 1, last]


@pytest.mark.django_db(transaction=True)
def test_what_begins_later_is_not_waited_for():
    publish()
    first = TaskEvent.objects.latest("pk").pk
    other = publish()
    last = TaskEvent.objects.latest("pk").pk
    assert first < last
    agent("bob")

    class BeginsAnother(threading.Event):
        """Never set; at the first wait it lets the one commit, and another one is under way from then on."""

        begun = False

        def wait(self, timeout: float | None = None) -> bool:
            if not self.begun:
                self.begun = True
                commit.set()
                later.start()
                assert under_way.wait(PATIENCE)
            return super().wait(timeout)

    under_way, end = threading.Event(), threading.Event()

    def change_later() -> None:
        try:
            with transaction.atomic():
                actions.cancel(publish("alice").pk, by=agent("alice"))
                under_way.set()
                assert end.wait(PATIENCE)
        finally:
            connections.close_all()

    later = threading.Thread(target=change_later)
    try:
        with change_under_way(other.pk) as commit:
            assert settled.last_event(BeginsAnother()) == last
            assert under_way.is_set()
    finally:
        end.set()
        later.join(PATIENCE)


@pytest.mark.django_db(transaction=True)
def test_one_that_takes_too_long_is_named():
    task = publish()
    agent("bob")
    with (
        change_under_way(task.pk),
        pytest.raises(TasksError, match=r"open for more than 0 s \(process id \d+\)"),
    ):
        settled.last_event(threading.Event(), patience=0)


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_stops_waits_no_longer():
    task = publish()
    agent("bob")
    stop = threading.Event()
    stop.set()
    with change_under_way(task.pk):
        assert settled.last_event(stop) is None


@pytest.mark.django_db(transaction=True)
def test_who_only_reads_is_not_waited_for():
    publish()
    reading, end = threading.Event(), threading.Event()

    def read() -> None:
        try:
            with transaction.atomic():
                list(TaskEvent.objects.all())
                with connection.cursor() as cursor:
                    cursor.execute("CREATE TEMPORARY TABLE mine (id int)")
                reading.set()
                assert end.wait(PATIENCE)
        finally:
            connections.close_all()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        assert reading.wait(PATIENCE)
        assert settled.last_event(threading.Event(), patience=0) is not None
    finally:
        end.set()
        reader.join(PATIENCE)
