"""What users see of their own who need not be let into the admin: the attachments of their conversations."""

from __future__ import annotations

from typing import cast

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractBaseUser
from django.http import Http404, HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from workspaces.models import Attachment
from workspaces.storing.downloads import download, may_see


@require_safe
@login_required
def attachment(request: HttpRequest, pk: int) -> HttpResponseBase:
    """One attachment, to be saved; one that the user may not see does not exist here."""
    rows = Attachment.objects.select_related("conversation")
    found = rows.filter(pk=pk).first()
    # login_required has let nobody else in. Both say the same, or it would tell which are there.
    if found is None or not may_see(cast("AbstractBaseUser", request.user), found):
        raise Http404
    return download(found)
