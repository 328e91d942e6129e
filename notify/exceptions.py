"""Everything that telling people and receivers can raise.

NotifyError
├── InvalidEvent        an event that cannot be dispatched as it is
│   └── UnknownTopic    no app has defined its topic
├── InvalidTopic        a topic's definition is refused
├── InvalidUrl          a receiver's URL is refused
├── InvalidHeader       a header of an endpoint's own is refused
├── InvalidSecret       a signing secret is refused
├── RotationRefused     a step of changing a secret does not follow from where it stands
├── RecoveryRefused     a recovery cannot be begun
├── EncryptionError     a secret at rest cannot be written or read
├── UnreadableBundle    the file of certificates to trust cannot be used
├── CheckupRefused      a receiver may not be checked up
└── DeliveryFailed      a webhook was not delivered; another try may help

A delivery that no other try can help raises :class:`jobs.exceptions.Permanent`.
"""

from __future__ import annotations

import datetime as dt


class NotifyError(Exception):
    """Base of every error of this app."""


class InvalidEvent(NotifyError, ValueError):
    """An event is refused; the message names the field and what is accepted."""


class UnknownTopic(InvalidEvent, LookupError):
    """No app has defined this topic in its ``topics`` module."""


class InvalidTopic(NotifyError, ValueError):
    """A topic's definition is refused; the message says why."""


class InvalidUrl(NotifyError, ValueError):
    """A receiver's URL is refused; the message never quotes it, since it may be a credential."""


class InvalidHeader(NotifyError, ValueError):
    """A header is refused; the message names it and never quotes its value, since that may be a credential."""


class InvalidSecret(NotifyError, ValueError):
    """A signing secret is refused; the message never quotes it."""


class RotationRefused(NotifyError):
    """A step of changing a secret is refused; the message says where the change stands, and what to do first."""


class RecoveryRefused(NotifyError):
    """A recovery cannot be begun; the message says why, and what to do."""


class EncryptionError(NotifyError):
    """``ACW_ENCRYPTION_KEYS`` has no key, or none that decrypts what is stored."""


class UnreadableBundle(NotifyError):
    """``NOTIFY_WEBHOOK_CA_BUNDLE`` names a file that cannot be read, or that holds no certificate."""


class CheckupRefused(NotifyError):
    """A receiver may not be checked up; the message says how its owner agrees."""


class DeliveryFailed(NotifyError):
    """A webhook was not delivered and is to be tried again.

    ``retry_after`` is the time that the receiver asked to be left alone; the queue waits at least
    that long.
    """

    def __init__(self, cause: str, *, retry_after: dt.timedelta | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(cause)
