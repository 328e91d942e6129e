"""What nobody may do in the admin, whatever permissions they have."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest


class OnlyRead:
    """For a model's admin or an inline: the program writes these rows, and nobody adds, changes or deletes them there."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
