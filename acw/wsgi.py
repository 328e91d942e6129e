"""The WSGI application, for gunicorn and its like: `gunicorn acw.wsgi`."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "acw.settings")

application = get_wsgi_application()

# Not with the first request: a page that cannot be loaded keeps the server from starting.
get_resolver().url_patterns  # noqa: B018
