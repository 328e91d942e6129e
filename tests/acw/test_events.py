from __future__ import annotations

from acw.events import LogEvent
from jobs.events import LogEvent as JobsEvent
from notify.events import LogEvent as NotifyEvent
from workspaces.events import LogEvent as WorkspacesEvent


def test_no_two_things_have_the_same_name():
    names = [*LogEvent, *JobsEvent, *NotifyEvent, *WorkspacesEvent]
    assert len(names) == len(set(names))
