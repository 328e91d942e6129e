"""Conversations in the admin: deleting is soft, and can be undone within the retention."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.options import InlineModelAdmin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.forms import BaseInlineFormSet, ModelForm
from django.http import HttpRequest
from django.utils.safestring import SafeString

from jobs.admin_permissions import OnlyRead
from jobs.pagination import CappedPaginator
from workspaces import actions
from workspaces.admin import pieces
from workspaces.admin.attachments import bytes_cell, download_link
from workspaces.models import Attachment, Conversation
from workspaces.querysets import ConversationQuerySet

SHOWN = 50
"""So many attachments are on the page of their conversation; all are in their list."""


class NewestFormSet(BaseInlineFormSet):  # type: ignore[type-arg] # not generic when it runs
    """What is shown is bounded; what comes back is looked for among all, since more may have been uploaded meanwhile."""

    def get_queryset(self) -> QuerySet[Attachment]:
        if not hasattr(self, "_newest"):
            rows = super().get_queryset()
            self._newest = rows if self.is_bound else rows[:SHOWN]
        return self._newest


class AttachmentInline(OnlyRead, admin.TabularInline[Attachment, Conversation]):
    """What the conversation has, newest first; attachments are added on a page of their own."""

    model = Attachment
    formset = NewestFormSet
    ordering = ["-id"]
    fields = ["name_cell", "readable_size", "content_type", "created_at", "download"]
    readonly_fields = ["name_cell", "readable_size", "download"]
    extra = 0

    @admin.display(description="name")
    def name_cell(self, attachment: Attachment) -> SafeString:
        return pieces.link("workspaces_attachment", attachment.pk, attachment.name)

    @admin.display(description="size")
    def readable_size(self, attachment: Attachment) -> SafeString | str:
        return bytes_cell(attachment)

    @admin.display(description="file")
    def download(self, attachment: Attachment) -> SafeString:
        return download_link(attachment)


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
    fields = [
        "title",
        "owner",
        "worktree",
        "created_at",
        "deleted_at",
        "all_attachments",
    ]
    readonly_fields = ["created_at", "deleted_at", "all_attachments"]
    inlines = [AttachmentInline]
    actions = ["delete_softly", "undelete"]
    paginator = CappedPaginator
    show_facets = admin.ShowFacets.NEVER
    show_full_result_count = False

    class Media:
        css = {"all": ["jobs/console.css", "workspaces/workspaces.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        # Counted for the rows of the page only.
        of_one = Attachment.objects.filter(conversation=OuterRef("pk")).order_by()
        counts = of_one.values("conversation").annotate(n=Count("pk")).values("n")
        return (
            super()
            .get_queryset(request)
            .annotate(attachment_count=Coalesce(Subquery(counts), 0))
        )

    def get_fields(
        self, request: HttpRequest, obj: Conversation | None = None
    ) -> list[Any]:
        # A new one has nothing yet that could be shown.
        return ["title", "owner", "worktree"] if obj is None else list(self.fields)

    def get_inlines(
        self, request: HttpRequest, obj: Conversation | None
    ) -> list[type[InlineModelAdmin[Any, Any]]]:
        return [] if obj is None else list(self.inlines)

    def has_delete_permission(
        self, request: HttpRequest, obj: Conversation | None = None
    ) -> bool:
        return False

    def save_model(
        self,
        request: HttpRequest,
        obj: Conversation,
        form: ModelForm[Conversation],
        change: bool,
    ) -> None:
        # Only what was edited: it may have been deleted or brought back since it was read.
        obj.save(update_fields=form.changed_data if change else None)

    def has_delete_softly_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("workspaces.delete_conversation")

    @admin.display(description="attachments")
    def attachment_count(self, conversation: Any) -> int:
        count: int = conversation.attachment_count
        return count

    @admin.display(description="attachments")
    def all_attachments(self, conversation: Any) -> SafeString | str:
        count: int = conversation.attachment_count
        text = (
            f"{count:,}, of which the newest {SHOWN} are below"
            if count > SHOWN
            else f"{count}"
        )
        return pieces.listed(
            "workspaces_attachment", text, conversation__id__exact=conversation.pk
        )

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
