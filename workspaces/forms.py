"""The form by which an attachment is uploaded in the admin."""

from __future__ import annotations

from typing import Any

from django import forms

from workspaces import attachments
from workspaces.exceptions import AttachmentError
from workspaces.models import Attachment, Conversation


class AttachmentForm(forms.ModelForm[Attachment]):
    """An upload for a conversation; what cannot be stored is refused here."""

    conversation = forms.ModelChoiceField(Conversation.objects.kept())
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
                    content_type=upload.content_type,
                )
            except AttachmentError as error:
                raise forms.ValidationError({"upload": str(error)}) from None
        return cleaned

    def _post_clean(self) -> None:
        """Nothing: the row is made by ``attachments.attach``, with its bytes."""
