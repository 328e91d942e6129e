"""What is done on the disk is refused in a transaction, which could be rolled back without it."""

from __future__ import annotations

from django.db import transaction


def refuse(what: str) -> None:
    """Raise RuntimeError where a transaction is open; ``what`` names the call that its caller has made."""
    try:
        with transaction.atomic(durable=True):
            pass
    except RuntimeError:
        raise RuntimeError(
            f"{what} was called in a transaction: what it does on the disk would stay if that were rolled back; "
            "call it before or after"
        ) from None
