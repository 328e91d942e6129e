from __future__ import annotations

from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest

from acw.wsgi import application


@pytest.mark.django_db  # a request's start looks after the connections
def test_the_application_answers():
    environ: dict[str, Any] = {"PATH_INFO": "/healthz", "HTTP_HOST": "localhost"}
    setup_testing_defaults(environ)
    statuses: list[str] = []

    def start_response(status: str, *_: Any) -> Any:
        statuses.append(status)

    body = b"".join(application(environ, start_response))
    assert (statuses, body) == (["200 OK"], b"ok\n")
