"""The form by which an attachment is uploaded in the admin."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.files.uploadedfile import UploadedFile

from workspaces import attachments
from workspaces.exceptions import AttachmentError, StorageFailed
from workspaces.models import Attachment, Conversation
from workspaces.storing import uploads


def type_of(upload: UploadedFile[bytes]) -> str:
    """The content type that the client says it has; some say none."""
    return upload.content_type or uploads.UNKNOWN_TYPE


class AttachmentForm(forms.ModelForm[Attachment]):
    """An upload for a conversation. Where all of it is right it is stored, so that a storage's refusal is said at the field.

    ``stored`` is its row then.
    """

    stored: Attachment | None = None

    conversation = forms.ModelChoiceField(
        Conversation.objects.kept(),
        # There may be very many: they are searched, and not all written into the page.
        widget=AutocompleteSelect(
            Attachment._meta.get_field("conversation"), admin.site
        ),
    )
    upload = forms.FileField()

    class Meta:
        model = Attachment
        fields = ["conversation"]

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean() or {}
        upload = cleaned.get("upload")
        if upload is not None:
            try:
                attachments.check(
                    cleaned.get("conversation"),
                    name=upload.name,
                    content_type=type_of(upload),
                )
                uploads.check_size(upload.size)
            except AttachmentError as error:
                raise forms.ValidationError({"upload": str(error)}) from None
        return cleaned

    def _post_clean(self) -> None:
        """Nothing of the model's: ``attachments.attach`` makes the row, with its bytes."""
        if self.errors:
            return
        upload = self.cleaned_data["upload"]
        try:
            self.stored = attachments.attach(
                self.cleaned_data["conversation"],
                name=upload.name,
                content=upload,
                content_type=type_of(upload),
            )
        except (AttachmentError, StorageFailed) as error:
            self.add_error("upload", str(error))
