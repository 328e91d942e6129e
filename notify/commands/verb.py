"""What verbs of `manage.py webhook` share: the endpoint that one is about, and the secret that it may have made."""

from __future__ import annotations

import argparse
import sys

from django.core.management.base import BaseCommand, CommandError

from notify import signing
from notify.models import WebhookEndpoint

_LONGEST_LINE = 5_000
"""Characters read where a secret or a URL is expected: more than any has."""


def name_argument(parser: argparse.ArgumentParser) -> None:
    """The endpoint's name, as the only argument."""
    parser.add_argument("name", metavar="NAME")


def endpoint_named(name: str) -> WebhookEndpoint:
    """The endpoint. Raises CommandError, a wrong call, which lists those that there are."""
    # What is not UTF-8 on the command line would be an error of the database's.
    endpoint = (
        WebhookEndpoint.objects.filter(name=name).first()
        if name.isprintable()
        else None
    )
    if endpoint is None:
        known = (
            ", ".join(WebhookEndpoint.objects.values_list("name", flat=True)) or "none"
        )
        raise CommandError(
            f"there is no endpoint {name!r}; there are: {known}", returncode=2
        )
    return endpoint


def given_line(option: str) -> str:
    """The next line of standard input, which ``option`` asks for. Raises CommandError, a wrong call, for what is no text."""
    try:
        return sys.stdin.readline(_LONGEST_LINE)
    except UnicodeDecodeError:
        raise CommandError(
            f"{option}: standard input is no text", returncode=2
        ) from None


def given_secret() -> str:
    """The secret, for ``--secret-stdin``; see :func:`given_line`."""
    return given_line("--secret-stdin")


def print_secret(command: BaseCommand, secret: str) -> None:
    """Print a secret that was made, in the two forms that receivers want it in; it is never shown again."""
    command.stdout.write(f"Secret, shown this once: {secret}")
    command.stdout.write(
        f"The same, for a library of Standard Webhooks: {signing.standard_form(secret)}"
    )
