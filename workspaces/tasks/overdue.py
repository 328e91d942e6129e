"""Tasks of which a live deadline is over, though nothing has come of it."""

from __future__ import annotations

import datetime as dt

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from workspaces.tasks.models import Transfer
from workspaces.tasks.states import Deadline
from workspaces.tasks.watches import WATCHES

GRACE = dt.timedelta(minutes=1)
"""So long a job may take to be noticed, claimed and done."""


def overdue(by: dt.timedelta = GRACE) -> Q:
    """The condition under which a task is overdue by more than that."""
    late = Q()
    for watch in WATCHES:
        template = Q() if watch.template is None else Q(template=watch.template)
        late |= Q(status=watch.status) & template & _over(watch.deadline, by)
    return late


def _over(deadline: Deadline, by: dt.timedelta) -> Q:
    if deadline is not Deadline.TRANSFER_UNTIL:
        return Q(**{f"{deadline}__lt": Now() - by})
    pending = Transfer.objects.filter(task=OuterRef("pk"), status="pending")
    return Q(Exists(pending.filter(expires_at__lt=Now() - by)))
