"""The form of a webhook endpoint: topics to tick, and a secret and headers that can be set and never read."""

from __future__ import annotations

import datetime as dt
from typing import Any, ClassVar

from django import forms

from jobs import durations
from notify import extra_headers, patterns, signing, targets, topics
from notify.exceptions import (
    EncryptionError,
    InvalidHeader,
    InvalidSecret,
    InvalidUrl,
)
from notify.models import WebhookEndpoint

UNCHANGED = "(unchanged)"
"""Stands in the place of a header's value that is kept."""

_RULE = (
    f"{signing.SECRET_MIN_BYTES} to {signing.SECRET_MAX_BYTES} printable characters without spaces; "
    "make one with: openssl rand -hex 32"
)


class _Lines(forms.CharField):
    widget = forms.Textarea(attrs={"rows": 4, "class": "vLargeTextField"})

    def to_python(self, value: Any) -> Any:
        # Browsers end lines as HTTP does, which is no change.
        return (super().to_python(value) or "").replace("\r\n", "\n")


class WebhookEndpointForm(forms.ModelForm[WebhookEndpoint]):
    """Adds and changes an endpoint."""

    secret = forms.CharField(
        required=False,
        strip=False,
        widget=forms.PasswordInput(
            attrs={"autocomplete": "new-password", "class": "vTextField"}
        ),
    )
    headers = _Lines(required=False, label="Headers of its own")
    timeout = forms.CharField(
        required=False,
        help_text=f"Over the whole exchange, {durations.ACCEPTED}. Empty: NOTIFY_WEBHOOK_TIMEOUT.",
    )

    class Meta:
        model = WebhookEndpoint
        fields = [
            "name",
            "url",
            "enabled",
            "topics",
            "timeout",
            "max_in_flight",
            "checkup_allowed",
        ]
        # A URL is long, and has to be seen whole to be checked.
        widgets: ClassVar = {"url": forms.TextInput(attrs={"class": "vLargeTextField"})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Saving must not drop a topic whose app is away for the moment.
        kept = {name: f"{name} (not defined any more)" for name in self.instance.topics}
        self.fields["topics"] = forms.MultipleChoiceField(
            choices=sorted((kept | _choices()).items()),
            required=False,
            widget=forms.CheckboxSelectMultiple,
            help_text="The events that are sent to it. Without any it gets nothing.",
        )
        # Whoever may only look is not given this field.
        if "max_in_flight" in self.fields:
            self.fields["max_in_flight"].required = False
        if self.instance.timeout is not None:
            self.initial["timeout"] = durations.written(self.instance.timeout)
        self._offer_secret()
        self._offer_headers()

    def _offer_secret(self) -> None:
        self.fields["secret"].required = not self.instance.encrypted_secret
        self.fields["secret"].help_text = (
            f"A secret is set. Leave this empty to keep it. A new one takes its place at once; to change it without a "
            f"delivery refused, rotate it instead. It is {_RULE}"
            if self.instance.encrypted_secret
            else f"Not set. It signs what is sent, and the receiver must have the same: {_RULE}"
        )

    def _offer_headers(self) -> None:
        help_text = (
            'Sent with every event, one "Name: value" a line. Values are kept encrypted and never shown again: '
            f"{UNCHANGED} keeps one, and a line that is taken out removes its header."
        )
        self._headers: dict[str, str] | None
        # Now, before the form writes what was typed into the instance.
        self._origin = _origin_of(self.instance.url)
        try:
            self._headers = self.instance.own_headers()
        except EncryptionError as error:
            self._headers = None
            help_text += f" Those that are set cannot be read, and stay while this is empty: {error}."
        names = self._headers or {}
        self.initial["headers"] = "\n".join(f"{name}: {UNCHANGED}" for name in names)
        self.fields["headers"].help_text = help_text

    def clean_secret(self) -> str:
        secret: str = self.cleaned_data["secret"]
        if not secret:
            return ""
        try:
            return signing.checked_secret(secret)
        except InvalidSecret as error:
            raise forms.ValidationError(str(error), code="invalid_secret") from None

    def clean_headers(self) -> dict[str, str]:
        kept = self._headers or {}
        try:
            given = extra_headers.parse(self.cleaned_data["headers"])
            for name, value in given.items():
                if value == UNCHANGED and name in kept:
                    self._check_goes_to_the_same(name)
                    given[name] = kept[name]
                elif value == UNCHANGED:
                    raise InvalidHeader(f"the header {name!r} has no value to keep")
            return extra_headers.checked(given)
        except InvalidHeader as error:
            raise forms.ValidationError(str(error), code="invalid_header") from None

    def _check_goes_to_the_same(self, name: str) -> None:
        """A value that nobody is shown must not be had by pointing the URL, which is cleaned already, elsewhere."""
        url = self.cleaned_data.get("url")
        if url and targets.parse(url).origin != self._origin:
            raise InvalidHeader(
                f"the header {name!r} has to be typed anew, or taken out: the URL leads to another host now, and what "
                "is kept was for the one before"
            )

    def clean_timeout(self) -> dt.timedelta | None:
        text: str = self.cleaned_data["timeout"]
        try:
            return durations.parse_duration(text) if text else None
        except ValueError as error:
            raise forms.ValidationError(
                f"{error}; accepted: {durations.ACCEPTED}", code="invalid_timeout"
            ) from None

    def clean_max_in_flight(self) -> int:
        given: int | None = self.cleaned_data["max_in_flight"]
        return self.instance.max_in_flight if given is None else given

    def save(self, commit: bool = True) -> WebhookEndpoint:
        if not self.errors and (secret := self.cleaned_data["secret"]):
            self.instance.set_secret(secret)
        if not self.errors and "headers" in self.changed_data:
            self.instance.set_headers(self.cleaned_data["headers"])
        return super().save(commit)


def _origin_of(url: str) -> str:
    try:
        return targets.parse(url).origin
    except InvalidUrl:
        return ""


def _choices() -> dict[str, str]:
    said = {
        pattern: f"{meaning} ({pattern})"
        for pattern, meaning in patterns.known().items()
    }
    exact = {
        topic.name: f"{topic.title} ({topic.name})" for topic in topics.webhook_topics()
    }
    return said | exact
