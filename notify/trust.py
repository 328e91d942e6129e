"""Whom webhooks trust over TLS: certifi's authorities, or those of ``NOTIFY_WEBHOOK_CA_BUNDLE``."""

from __future__ import annotations

import functools
import os
import ssl

from notify.exceptions import UnreadableBundle

_Stamp = tuple[int, int]


def context(bundle: str | None, *, otherwise: str) -> ssl.SSLContext:
    """What to verify a receiver with: the authorities in the file ``bundle``, or in ``otherwise`` where it is empty.

    A file that has changed is read again. Raises :class:`~notify.exceptions.UnreadableBundle` for a ``bundle`` that
    holds no certificate.
    """
    return _read_own(bundle) if bundle else _read(otherwise, None)


def check(bundle: str | None) -> None:
    """Raises :class:`~notify.exceptions.UnreadableBundle` for a ``bundle`` that could not be used."""
    if bundle:
        _read_own(bundle)


def _read_own(bundle: str) -> ssl.SSLContext:
    try:
        found = os.stat(bundle)
        return _read(bundle, (found.st_mtime_ns, found.st_size))
    except OSError as error:
        # A file without a certificate is an SSLError, which is an OSError.
        reason = (
            "it holds no certificate in PEM form"
            if isinstance(error, ssl.SSLError)
            else error.strerror
        )
        raise UnreadableBundle(
            f"NOTIFY_WEBHOOK_CA_BUNDLE: {bundle} cannot be used: {reason}"
        ) from None


# Reading the authorities takes far longer than an exchange.
@functools.lru_cache(maxsize=4)
def _read(file: str, stamp: _Stamp | None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=file)
    made.set_alpn_protocols(["http/1.1"])
    if stamp is not None:
        # Some versions of Python ask more of an authority's certificate than many a private one has.
        made.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return made
