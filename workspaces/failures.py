"""What kind of failure a git command's is: decides whether it is told, tried again, and when."""

from __future__ import annotations

from django.db import models


class Failure(models.TextChoices):
    """The classes of a fetch that failed; one that worked has none."""

    AUTH = "auth"
    NOT_FOUND = "not_found"
    HOST_KEY = "host_key"
    NETWORK = "network"
    TIMEOUT = "timeout"
    LOCK = "lock"
    CORRUPT = "corrupt"
    DISK_FULL = "disk_full"
    REFUSED = "refused"
    CONFIG_TAMPERED = "config_tampered"
