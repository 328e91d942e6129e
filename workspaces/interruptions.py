"""What the work's own exceptions mean to the queue: handlers do theirs within :func:`interruptible`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.context import JobContext
from jobs.exceptions import Permanent, Snooze
from workspaces.exceptions import GitStopped, RepositoryBusy, WrongHost

BUSY_DELAY = dt.timedelta(seconds=30)


@contextmanager
def interruptible(context: JobContext) -> Iterator[None]:
    """A repository that is busy and a worker that stops put the job off, without using up an attempt; a wrong host fails it for good."""
    try:
        yield
    except RepositoryBusy as error:
        raise Snooze(BUSY_DELAY, str(error)) from error
    except GitStopped as error:
        context.check_lease()
        # The worker is going down: the next one begins anew, and no attempt is used up.
        raise Snooze(dt.timedelta(0), str(error)) from error
    except WrongHost as error:
        raise Permanent(str(error)) from error
