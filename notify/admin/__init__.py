"""How notifications and webhooks look in the admin. What is done with them lives elsewhere."""

from __future__ import annotations

from notify.admin import attempts, deliveries, endpoints, records, recoveries

__all__ = ["attempts", "deliveries", "endpoints", "records", "recoveries"]
