"""The argument ``--owner`` of the commands: the user who is told what concerns a thing."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.management.base import CommandError


def find_owner(name: str | None) -> AbstractBaseUser | None:
    """The user of this name; None where none is named. Raises CommandError where there is no such user."""
    if name is None:
        return None
    users = get_user_model()
    try:
        if name.isprintable():  # not every other name could be asked for
            return users._default_manager.get_by_natural_key(name)
    except users.DoesNotExist:
        pass
    raise CommandError(f"--owner: there is no user {name!r}")
