"""Questions about tasks, as SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.apps import apps
from django.db.models import OuterRef, QuerySet, Subquery

from workspaces.tasks.states import LIVE

if TYPE_CHECKING:
    from workspaces.tasks.models import Task


class TaskQuerySet(QuerySet["Task"]):
    """Tasks, chosen by what is the matter with them."""

    def live(self) -> Self:
        """Those in which a deadline is watched."""
        return self.filter(status__in=LIVE)

    def with_transfers(self) -> Self:
        """Each with ``transfer_until``, when its pending transfer expires; None where there is none."""
        transfers = apps.get_model("tasks", "Transfer")._default_manager
        pending = transfers.filter(task=OuterRef("pk"), status="pending")
        return self.annotate(transfer_until=Subquery(pending.values("expires_at")[:1]))

    def with_people(self) -> Self:
        """Each with its publisher and holder, and the users behind them."""
        return self.select_related(
            "publisher__user", "publisher__owner", "holder__user", "holder__owner"
        )
