"""Conversations and attachments: deleting is soft, and files are downloaded, never opened in the page."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet
from django.forms import ModelForm
from django.http import FileResponse, Http404, HttpRequest, HttpResponseBase
from django.template.defaultfilters import filesizeformat
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from workspaces import actions, attachments
from workspaces.exceptions import WrongHost
from workspaces.forms import AttachmentForm
from workspaces.models import Attachment, Conversation
from workspaces.querysets import ConversationQuerySet


def _download_link(attachment: Attachment) -> SafeString:
    url = reverse("admin:workspaces_attachment_download", args=[attachment.pk])
    return format_html('<a href="{}">Download</a>', url)


def _readable_size(attachment: Attachment) -> str:
    return filesizeformat(attachment.size)


class AttachmentInline(admin.TabularInline[Attachment, Conversation]):
    """What the conversation has; attachments are added on a page of their own."""

    model = Attachment
    fields = ["name", "readable_size", "content_type", "host", "created_at", "download"]
    readonly_fields = ["readable_size", "download"]
    extra = 0
    show_change_link = True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description="size")
    def readable_size(self, attachment: Attachment) -> str:
        return _readable_size(attachment)

    @admin.display(description="file")
    def download(self, attachment: Attachment) -> SafeString:
        return _download_link(attachment)


@admin.register(Conversation)
class ConversationAdmin(admin.ModelAdmin[Conversation]):
    """Deleted softly, so that it can be brought back within the retention."""

    list_display = [
        "title",
        "owner",
        "worktree",
        "attachment_count",
        "created_at",
        "deleted_at",
    ]
    list_filter = [("deleted_at", admin.EmptyFieldListFilter), "created_at"]
    list_select_related = ["owner", "worktree"]
    search_fields = ["=id", "title", "=owner__username"]
    autocomplete_fields = ["owner", "worktree"]
    fields = ["title", "owner", "worktree", "created_at", "deleted_at"]
    readonly_fields = ["created_at", "deleted_at"]
    inlines = [AttachmentInline]
    actions = ["delete_softly", "undelete"]
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        return (
            super()
            .get_queryset(request)
            .annotate(attachment_count=Count("attachments"))
        )

    def has_delete_permission(
        self, request: HttpRequest, obj: Conversation | None = None
    ) -> bool:
        return False

    def has_delete_softly_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("workspaces.delete_conversation")

    @admin.display(description="attachments", ordering="attachment_count")
    def attachment_count(self, conversation: Any) -> int:
        count: int = conversation.attachment_count
        return count

    @admin.action(
        description="Delete, with attachments after the retention",
        permissions=["delete_softly"],
    )
    def delete_softly(
        self, request: HttpRequest, queryset: QuerySet[Conversation]
    ) -> None:
        count = actions.delete_conversations(
            _chosen(queryset), actor=request.user.get_username()
        )
        self.message_user(request, f"{count} deleted.", messages.SUCCESS)

    @admin.action(description="Undelete", permissions=["delete_softly"])
    def undelete(self, request: HttpRequest, queryset: QuerySet[Conversation]) -> None:
        count = actions.undelete_conversations(
            _chosen(queryset), actor=request.user.get_username()
        )
        self.message_user(request, f"{count} undeleted.", messages.SUCCESS)


def _chosen(queryset: QuerySet[Conversation]) -> ConversationQuerySet:
    """The same rows without the list's counts, which could not be locked."""
    return Conversation.objects.filter(pk__in=queryset.values_list("pk", flat=True))


@admin.register(Attachment)
class AttachmentAdmin(admin.ModelAdmin[Attachment]):
    """Added with their bytes, then only looked at, downloaded and taken out of their conversation."""

    list_display = [
        "name",
        "conversation",
        "readable_size",
        "content_type",
        "host",
        "created_at",
        "orphaned_at",
    ]
    list_filter = [
        "host",
        ("orphaned_at", admin.EmptyFieldListFilter),
        ("conversation__deleted_at", admin.EmptyFieldListFilter),
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
            "name",
            "conversation",
            "readable_size",
            "content_type",
            "host",
            "download",
            "created_at",
            "orphaned_at",
        ]

    def get_readonly_fields(
        self, request: HttpRequest, obj: Attachment | None = None
    ) -> list[Any]:
        return [] if obj is None else self.get_fields(request, obj)

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
        upload = form.cleaned_data["upload"]
        stored = attachments.attach(
            form.cleaned_data["conversation"],
            name=upload.name,
            content=upload,
            content_type=upload.content_type,
        )
        obj.pk, obj.name = stored.pk, stored.name

    @admin.display(description="size", ordering="size")
    def readable_size(self, attachment: Attachment) -> str:
        return _readable_size(attachment)

    @admin.display(description="file")
    def download(self, attachment: Attachment) -> SafeString:
        return _download_link(attachment)

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
        attachment = self.get_object(request, unquote(object_id))
        if attachment is None:
            raise Http404
        if not self.has_view_permission(request, attachment):
            raise PermissionDenied
        try:
            content = attachments.open_bytes(attachment)
        except (WrongHost, FileNotFoundError) as error:
            raise Http404(str(error)) from None
        return FileResponse(
            content,
            as_attachment=True,
            filename=attachment.name,
            content_type="application/octet-stream",
            headers={
                "X-Content-Type-Options": "nosniff",
                "Content-Security-Policy": "sandbox; default-src 'none'",
            },
        )
