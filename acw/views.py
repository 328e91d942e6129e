"""Whether this process lives, and whether it can do its work: for load balancers."""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from acw.events import LogEvent
from jobs import stats
from jobs.schema import unapplied_migrations

log = logging.getLogger(__name__)


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers; nothing else is asked."""
    return _plain("ok")


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """The database answers and has every migration, and no worker of this host has stalled."""
    try:
        unapplied = unapplied_migrations()
        stalled = [] if unapplied else stats.stalled_parts(host=settings.ACW_HOST)
    except Error as error:
        # The error's text names hosts and users: it belongs in the log, not here.
        log.warning(LogEvent.NOT_READY, extra={"error": error})
        return _plain("the database cannot be reached", status=503)
    if unapplied:
        return _plain(f"{len(unapplied)} migrations are not applied", status=503)
    if stalled:
        log.warning(LogEvent.NOT_READY, extra={"error": "; ".join(stalled)})
        return _plain("\n".join(stalled), status=503)
    return _plain("ok")


def _plain(text: str, *, status: int = 200) -> HttpResponse:
    return HttpResponse(f"{text}\n", content_type="text/plain", status=status)
