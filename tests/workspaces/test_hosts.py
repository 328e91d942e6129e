from __future__ import annotations

import pytest
from pytest_django import Settings

from tests.workspaces.factories import WorkspaceFactory
from workspaces import hosts
from workspaces.exceptions import WrongHost


def test_a_hosts_queue_is_named_after_it():
    assert hosts.queue_of("a.example") == "host:a.example"


def test_the_host_is_the_settings(settings: Settings):
    settings.ACW_HOST = "here"
    assert hosts.this_host() == "here"
    hosts.check(WorkspaceFactory.build(host="here"))
    with pytest.raises(WrongHost, match="lies on host 'there' and this is 'here'"):
        hosts.check(WorkspaceFactory.build(host="there"))
