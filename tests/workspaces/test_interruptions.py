from __future__ import annotations

import datetime as dt

import pytest

from jobs.exceptions import LeaseLost, Permanent, Snooze
from tests.workspaces.conftest import context
from workspaces import interruptions
from workspaces.exceptions import GitStopped, RepositoryBusy, WrongHost


@pytest.mark.parametrize(
    ("error", "delay"),
    [
        (RepositoryBusy("busy"), interruptions.BUSY_DELAY),
        (GitStopped("fetch", "was ended"), dt.timedelta(0)),
    ],
    ids=["busy", "stopped"],
)
def test_what_is_in_the_way_for_now_puts_the_job_off(
    error: Exception, delay: dt.timedelta
):
    with pytest.raises(Snooze) as caught, interruptions.interruptible(context()):
        raise error
    assert caught.value.delay == delay


def test_a_lease_that_passed_on_ends_it():
    lost = context()
    lost.notify_lease_lost()
    with pytest.raises(LeaseLost), interruptions.interruptible(lost):
        raise GitStopped("fetch", "was ended")


def test_a_wrong_host_fails_it_for_good():
    with pytest.raises(Permanent), interruptions.interruptible(context()):
        raise WrongHost("not here")
