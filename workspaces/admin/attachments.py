"""Attachments in the admin: files are downloaded, and never opened in the page."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.markup import NOTHING, badge
from jobs.pagination import CappedPaginator
from workspaces import actions
from workspaces.admin import filters, pieces
from workspaces.models import Attachment
from workspaces.storing import downloads
from workspaces.storing.forms import AttachmentForm


def download_link(attachment: Attachment) -> SafeString:
    url = reverse("admin:workspaces_attachment_download", args=[attachment.pk])
    return format_html('<a href="{}">Download</a>', url)


def bytes_cell(attachment: Attachment) -> SafeString | str:
    """How large it is, and since when its bytes are missing, if they are."""
    size = pieces.size(attachment.size)
    if attachment.missing_at is None:
        return size
    since = pieces.moment(attachment.missing_at)
    return format_html("{} {} since {}", size, badge("lost", "missing"), since)


@admin.register(Attachment)
class AttachmentAdmin(admin.ModelAdmin[Attachment]):
    """Added with their bytes, then only looked at, downloaded and taken out of their conversation."""

    paginator = CappedPaginator
    show_facets = admin.ShowFacets.NEVER
    list_display = [
        "name_cell",
        "conversation_cell",
        "readable_size",
        "content_type",
        "host_cell",
        "created_at",
        "orphaned_at",
    ]
    list_filter = [
        filters.MissingFilter,
        filters.OrphanedFilter,
        filters.DeletedFilter,
    ]
    list_select_related = ["conversation"]
    search_fields = ["=id", "name", "conversation__title"]
    actions = ["detach"]
    show_full_result_count = False

    def get_form(
        self,
        request: HttpRequest,
        obj: Attachment | None = None,
        change: bool = False,
        **kwargs: Any,
    ) -> type[ModelForm[Attachment]]:
        if obj is None:
            kwargs["form"] = AttachmentForm
        return super().get_form(request, obj, change, **kwargs)

    def get_fields(
        self, request: HttpRequest, obj: Attachment | None = None
    ) -> list[Any]:
        if obj is None:
            return ["conversation", "upload"]
        return [
            "name_cell",
            "conversation",
            "readable_size",
            "content_type",
            "host_cell",
            "download",
            "digest",
            "created_at",
            "orphaned_at",
        ]

    def get_readonly_fields(
        self, request: HttpRequest, obj: Attachment | None = None
    ) -> list[Any]:
        return [] if obj is None else self.get_fields(request, obj)

    class Media:
        css = {"all": ["jobs/console.css", "workspaces/workspaces.css"]}

    def has_change_permission(
        self, request: HttpRequest, obj: Attachment | None = None
    ) -> bool:
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Attachment | None = None
    ) -> bool:
        return False

    def has_detach_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("workspaces.change_attachment")

    def save_model(
        self,
        request: HttpRequest,
        obj: Attachment,
        form: ModelForm[Attachment],
        change: bool,
    ) -> None:
        stored = cast("AttachmentForm", form).stored
        assert stored is not None  # noqa: S101 (a form that is valid has stored it)
        obj.pk, obj.name = stored.pk, stored.name

    @admin.display(description="name", ordering="name")
    def name_cell(self, attachment: Attachment) -> SafeString | str:
        return pieces.clamped(attachment.name)

    @admin.display(description="conversation", ordering="conversation")
    def conversation_cell(self, attachment: Attachment) -> SafeString | str:
        conversation = attachment.conversation
        return NOTHING if conversation is None else pieces.clamped(str(conversation))

    @admin.display(description="size", ordering="size")
    def readable_size(self, attachment: Attachment) -> SafeString | str:
        return bytes_cell(attachment)

    @admin.display(description="kept on")
    def host_cell(self, attachment: Attachment) -> str:
        return attachment.host or "a storage that every host reaches"

    @admin.display(description="file")
    def download(self, attachment: Attachment) -> SafeString:
        return download_link(attachment)

    @admin.action(description="Take out of its conversation", permissions=["detach"])
    def detach(self, request: HttpRequest, queryset: QuerySet[Attachment]) -> None:
        chosen = Attachment.objects.filter(pk__in=queryset.values_list("pk", flat=True))
        count = actions.detach_attachments(chosen, actor=request.user.get_username())
        self.message_user(
            request,
            f"{count} detached; they are removed after the retention.",
            messages.SUCCESS,
        )

    def get_urls(self) -> list[URLPattern]:
        download = path(
            "<path:object_id>/download/",
            self.admin_site.admin_view(self.download_view),
            name="workspaces_attachment_download",
        )
        return [download, *super().get_urls()]

    def download_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """The bytes, as a file to be saved: what agents and users stored is never shown as a page."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        attachment = self.get_object(request, unquote(object_id))
        if attachment is None:
            raise Http404
        return downloads.download(attachment)
