"""Secrets that ACW makes for itself in the embedded mode, kept in files of their own."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def kept_secret(path: Path, *, make: Callable[[], str]) -> str:
    """Return the secret in the file, which is made, mode 0600, when there is none."""
    try:
        return _read(path) or _create(path, make())
    except OSError as error:
        raise ImproperlyConfigured(
            f"cannot keep a generated secret in {path}: {error.strerror}; make the"
            " directory writable, or choose another with ACW_STATE_DIR"
        ) from None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""


def _create(path: Path, secret: str) -> str:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secret + "\n")
    try:
        # Linking fails where another process was quicker: then its secret is the one,
        # and nobody ever reads a half-written file.
        os.link(draft, path)
    except FileExistsError:
        secret = _read(path)
    finally:
        draft.unlink()
    return secret
