"""The form of a webhook endpoint: topics to tick, and a secret that can be set and never read."""

from __future__ import annotations

from typing import Any

from django import forms

from notify import signing, topics
from notify.exceptions import InvalidSecret
from notify.models import WebhookEndpoint

_RULE = (
    f"{signing.SECRET_MIN_BYTES} to {signing.SECRET_MAX_BYTES} printable characters without spaces; "
    "make one with: openssl rand -hex 32"
)


class WebhookEndpointForm(forms.ModelForm[WebhookEndpoint]):
    """Adds and changes an endpoint."""

    secret = forms.CharField(
        required=False,
        strip=False,
        widget=forms.PasswordInput(
            attrs={"autocomplete": "new-password", "class": "vTextField"}
        ),
    )

    class Meta:
        model = WebhookEndpoint
        fields = ["name", "url", "enabled", "topics"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = {
            topic.name: f"{topic.title} ({topic.name})"
            for topic in topics.webhook_topics()
        }
        # Saving must not drop a topic whose app is away for the moment.
        kept = {name: f"{name} (not defined any more)" for name in self.instance.topics}
        self.fields["topics"] = forms.MultipleChoiceField(
            choices=sorted((kept | known).items()),
            required=False,
            widget=forms.CheckboxSelectMultiple,
            help_text="The events that are sent to it. Without any it gets nothing.",
        )
        self.fields["secret"].required = not self.instance.encrypted_secret
        self.fields["secret"].help_text = (
            f"A secret is set. Leave this empty to keep it. A new one: {_RULE}"
            if self.instance.encrypted_secret
            else f"Not set. It signs what is sent, and the receiver must have the same: {_RULE}"
        )

    def clean_secret(self) -> str:
        secret: str = self.cleaned_data["secret"]
        if not secret:
            return ""
        try:
            return signing.checked_secret(secret)
        except InvalidSecret as error:
            raise forms.ValidationError(str(error), code="invalid_secret") from None

    def save(self, commit: bool = True) -> WebhookEndpoint:
        if not self.errors and (secret := self.cleaned_data["secret"]):
            self.instance.set_secret(secret)
        return super().save(commit)
