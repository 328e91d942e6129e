"""The one module that opens HTTP: a single POST, to one receiver, within one deadline.

It follows no redirect, uses no proxy, password file or cookie of its surroundings, keeps no connection, and
decodes nothing. That is why ``requests.Session``, which does all of these, is not used: a prepared request goes
straight to an adapter that lives for one exchange.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import http.client
import logging
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from notify import targets
from notify.addresses import Network
from notify.deadline import Deadline
from notify.dialing import Dialer, DialFailed, Resolver, look_up
from notify.exceptions import InvalidUrl
from notify.exchange import Exchange, Failure
from notify.targets import Target

EXCERPT_BYTES = 2_048
EXCERPT_SECONDS = 2.0
"""How long the answer's body is waited for, once the status is known."""

USER_AGENT = "ACW-Webhooks"

_HEADER_LIMIT = 200
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")
_HEADER_VALUE = re.compile(r"[ -~]*")
_OWN_HEADERS = {
    "User-Agent": USER_AGENT,
    "Connection": "close",
    "Accept-Encoding": "identity",
}


def _keep_out_of_logs(record: logging.LogRecord) -> bool:
    return False


# What urllib3 logs holds path and query of the URL, which may be credentials.
for _name in ("urllib3.connection", "urllib3.connectionpool", "urllib3.util.retry"):
    logging.getLogger(_name).addFilter(_keep_out_of_logs)


def post(
    url: str,
    *,
    body: bytes,
    headers: Mapping[str, str],
    timeout: dt.timedelta,
    allowed: Sequence[Network] = (),
    ca_bundle: str | None = None,
    resolver: Resolver = look_up,
) -> Exchange:
    """POST ``body`` once and return what came of it; raises nothing.

    ``timeout`` bounds everything up to the end of the answer's head. ``allowed`` are networks that the address
    policy would refuse. ``ca_bundle`` is a file of certificates to trust in place of certifi's.
    """
    began = time.monotonic()
    with Deadline(timeout.total_seconds()) as deadline:
        try:
            target = targets.parse(url)
            prepared = _prepare(target, body=body, headers=headers)
        except InvalidUrl as error:
            return _failed(Failure.INVALID, str(error), began=began)
        # Whatever the library dislikes about a request, it will dislike again.
        except Exception as error:
            cause = f"the request cannot be made: {type(error).__name__}"
            return _failed(Failure.INVALID, cause, began=began)
        dialer = Dialer(target, allowed=allowed, deadline=deadline, resolver=resolver)
        adapter = _OneShot(dialer)
        try:
            response = adapter.send(
                prepared,
                stream=True,
                timeout=deadline.left or 0.001,
                verify=ca_bundle or True,
            )
            if deadline.disarm():
                raise DialFailed(Failure.DEADLINE, "")
            duration = _since(began)
            deadline.shorten(EXCERPT_SECONDS)
            return Exchange(
                status=response.status_code,
                duration=duration,
                peer=dialer.peer,
                retry_after=_header(response, "Retry-After"),
                redirect=_redirect(response, target),
                excerpt=_excerpt(response),
            )
        # Every way in which an exchange can end is an answer here.
        except Exception as error:
            failure, cause = _explain(error, deadline=deadline)
            if failure is Failure.DEADLINE and not cause:
                cause = f"no complete answer within {timeout.total_seconds():g} s"
            return _failed(failure, cause, began=began, peer=dialer.peer)
        finally:
            adapter.close()


class _OneShot(HTTPAdapter):
    """An adapter whose connections are opened by one dialer."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer
        super().__init__(pool_connections=1, pool_maxsize=1)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        dialer = self._dialer

        # Only the socket is replaced: Host, SNI and the certificate's check keep the name.
        class Plain(HTTPConnection):
            def _new_conn(self) -> socket.socket:
                return dialer.dial()

        class Tls(HTTPSConnection):
            def _new_conn(self) -> socket.socket:
                return dialer.dial()

        class PlainPool(HTTPConnectionPool):
            ConnectionCls = Plain

        class TlsPool(HTTPSConnectionPool):
            ConnectionCls = Tls

        # Replaced and not changed: it is urllib3's table for everyone in the process.
        self.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": TlsPool}


def _prepare(
    target: Target, *, body: bytes, headers: Mapping[str, str]
) -> requests.PreparedRequest:
    sent = {**headers, **_OWN_HEADERS}
    for name, value in sent.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise InvalidUrl(f"the header {name!r} is not printable ASCII")
    return requests.Request("POST", target.url, data=body, headers=sent).prepare()


def _failed(
    failure: Failure, cause: str, *, began: float, peer: str | None = None
) -> Exchange:
    return Exchange(failure=failure, cause=cause, duration=_since(began), peer=peer)


def _since(began: float) -> dt.timedelta:
    return dt.timedelta(seconds=time.monotonic() - began)


def _header(response: requests.Response, name: str) -> str | None:
    value = response.headers.get(name)
    return None if value is None else value[:_HEADER_LIMIT]


def _redirect(response: requests.Response, target: Target) -> str | None:
    location = response.headers.get("Location")
    return None if location is None else targets.redirect_target(location, target)


def _excerpt(response: requests.Response) -> bytes:
    """The first bytes of the body, and the end of the connection.

    It decides nothing, so nothing that is wrong with it matters.
    """
    kept = bytearray()
    with contextlib.suppress(Exception), response:
        while len(kept) < EXCERPT_BYTES:
            part = response.raw.read1(EXCERPT_BYTES - len(kept), decode_content=False)
            if not part:
                break
            kept += part
    return bytes(kept)


def _explain(error: Exception, *, deadline: Deadline) -> tuple[Failure, str]:
    """Where an exchange ended and why, in words of our own: the libraries' messages quote the URL."""
    if isinstance(error, DialFailed):
        return error.failure, str(error)
    if deadline.passed:
        return Failure.DEADLINE, ""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Failure.TLS, f"the certificate is refused: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return (
                Failure.TLS,
                f"TLS failed: {(cause.reason or 'unknown').lower().replace('_', ' ')}",
            )
        if isinstance(cause, TimeoutError):
            return Failure.DEADLINE, ""
        if isinstance(cause, http.client.RemoteDisconnected):
            return (
                Failure.NETWORK,
                "the receiver closed the connection without an answer",
            )
        if isinstance(cause, http.client.HTTPException):
            return Failure.NETWORK, f"the answer is not HTTP: {type(cause).__name__}"
        if isinstance(cause, OSError) and cause.strerror:
            return Failure.NETWORK, f"the connection broke: {cause.strerror}"
    return Failure.UNEXPECTED, f"unexpected {type(error).__name__} while sending"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and those that it wraps, the outermost first."""
    queue, seen = [error], set[int]()
    while queue:
        current = queue.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        wrapped = [current.__cause__, getattr(current, "reason", None), *current.args]
        queue += [each for each in wrapped if isinstance(each, BaseException)]
