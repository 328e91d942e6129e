"""The page that asks whether what was planted in a clone's configuration is wanted there, and approves exactly what it shows."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods

from jobs.admin_verbs import VerbAdmin
from workspaces import hosts, paths, seal
from workspaces.admin import pieces
from workspaces.exceptions import WorkspacesError
from workspaces.models import Workspace
from workspaces.repository import Repository

_APPROVE = "workspaces.approve_workspace"


class ApprovedAdmin(VerbAdmin[Workspace]):
    """Workspaces whose configuration an operator can approve."""

    def has_change_permission(
        self, request: HttpRequest, obj: Workspace | None = None
    ) -> bool:
        # The owner is edited by hand; VerbAdmin would have nothing edited.
        return request.user.has_perm("workspaces.change_workspace")

    def get_urls(self) -> list[URLPattern]:
        approve = path(
            "<path:object_id>/approve/",
            self.admin_site.admin_view(
                require_http_methods(["GET", "HEAD", "POST"])(self._approve_view)
            ),
            name="workspaces_workspace_approve",
        )
        return [approve, *super().get_urls()]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        workspace: Workspace | None = kwargs.get("obj")
        if (
            workspace is not None
            and workspace.tampered_config
            and request.user.has_perm(_APPROVE)
        ):
            context["approve_url"] = self._url("approve", workspace, request)
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description="found, and not approved")
    def planted(self, workspace: Workspace) -> SafeString | str:
        if not workspace.tampered_config:
            return "nothing"
        since = pieces.moment(workspace.tampered_since)
        return format_html("{}since {}", _table(workspace.tampered_config), since)

    @admin.display(description="approved")
    def approved(self, workspace: Workspace) -> SafeString | str:
        if not workspace.approved_config:
            return "nothing"
        return _table(workspace.approved_config)

    def _approve_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        if not (request.user.has_perm(_APPROVE) and self.has_view_permission(request)):
            raise PermissionDenied(_APPROVE)
        workspace = self.get_object(request, unquote(object_id))
        if workspace is None:
            raise Http404(f"there is no workspace {object_id}")
        back = HttpResponseRedirect(self._url("change", workspace, request))
        try:
            hosts.check(workspace)
            found = [one.as_data() for one in _found(workspace)]
            if request.method != "POST":
                return self._ask(request, workspace, found)
            if request.POST.get("seen") != _digest(found):
                self.message_user(
                    request,
                    "It has changed since the page was drawn: look again.",
                    messages.WARNING,
                )
                return self._ask(request, workspace, found)
            approved = seal.approve(
                workspace, actor=request.user.get_username(), seen=found
            )
        except WorkspacesError as error:
            self.message_user(request, pieces.shown(str(error)), messages.ERROR)
            return back
        count = len(approved)
        text = f"{count} key{'' if count == 1 else 's'} approved."
        self.message_user(request, text, messages.SUCCESS)
        return back

    def _ask(
        self, request: HttpRequest, workspace: Workspace, found: list[dict[str, str]]
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": f"Approve the configuration of {workspace.name}",
            "opts": self.opts,
            "media": self.media,
            "workspace": workspace,
            "found": _table(found) if found else "",
            "seen": _digest(found),
            "back": self._url("change", workspace, request),
        }
        template = "admin/workspaces/workspace/approve.html"
        return TemplateResponse(request, template, context)


def _found(workspace: Workspace) -> list[Any]:
    repository = Repository(paths.own_directory(workspace))
    return list(seal.planted(workspace, repository))


def _digest(found: list[dict[str, str]]) -> str:
    return sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


def _table(entries: list[dict[str, str]]) -> SafeString:
    rows = format_html_join(
        "",
        '<tr><td data-label="file">{}</td><td data-label="key">{}</td><td data-label="value">{}</td></tr>',
        (
            [
                pieces.shown(str(each.get(part, "")))
                for part in ("where", "key", "value")
            ]
            for each in entries
        ),
    )
    return format_html(
        '<table class="keys"><thead><tr><th scope="col">File</th><th scope="col">Key</th><th scope="col">Value</th></tr>'
        "</thead><tbody>{}</tbody></table>",
        rows,
    )
