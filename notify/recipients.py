"""Who is told."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser


def admins() -> list[AbstractBaseUser]:
    """Every admin: the superusers who are active."""
    return list(
        get_user_model()
        ._default_manager.filter(is_superuser=True, is_active=True)
        .order_by("pk")
    )


def owner_or_admins(owner: AbstractBaseUser | None) -> list[AbstractBaseUser]:
    """The owner of what it is about; every admin where it has none, or one who can no longer log in."""
    return [owner] if owner is not None and owner.is_active else admins()
