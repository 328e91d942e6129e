"""The one module that opens HTTP: a single POST, to one receiver, within one deadline.

It follows no redirect, uses no proxy, password file or cookie of its surroundings, keeps no connection, and
decodes nothing. That is why ``requests.Session``, which does all of these, is not used: a prepared request goes
straight to an adapter that lives for one exchange.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import http.client
import re
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

import requests
from requests.adapters import DEFAULT_CA_BUNDLE_PATH, BaseAdapter

from notify import targets
from notify.addresses import Network
from notify.deadline import Deadline, TimedSocket
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
    deadline = Deadline(timeout.total_seconds())
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
    try:
        with contextlib.closing(_OneShot(target, dialer, deadline)) as adapter:
            response = adapter.send(prepared, verify=ca_bundle or True)
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


class _OneShot(BaseAdapter):
    """Sends one request over a connection that one dialer opens, and closes it when it is closed itself.

    Not requests' own adapter: what that sets up for connections to come takes longer than an exchange.
    """

    def __init__(self, target: Target, dialer: Dialer, deadline: Deadline) -> None:
        super().__init__()
        self._target = target
        self._dialer = dialer
        self._deadline = deadline
        self._open = contextlib.ExitStack()

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = True,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        """The answer as soon as its head is there; the body is still to be read, from its ``raw``.

        ``verify`` is a file of certificates to trust, and anything else is requests' own. The other options
        count for nothing: the deadline is the time limit, and there is neither proxy nor certificate of ours.
        """
        connected = self._open.enter_context(self._connect(verify))
        timed = TimedSocket(connected, self._deadline)
        # It may have answered before it took all of the body: what it says counts.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            timed.sendall(_as_sent(request))
        raw = http.client.HTTPResponse(timed, method=request.method)  # type: ignore[arg-type]
        self._open.enter_context(raw)
        raw.begin()
        response = requests.Response()
        response.status_code = raw.status
        response.headers.update(raw.headers)
        response.raw = raw
        return response

    def close(self) -> None:
        self._open.close()

    def _connect(self, verify: Any) -> socket.socket:
        dialled = self._dialer.dial()
        if self._target.scheme == "http":
            return dialled
        try:
            # The handshake as a whole: all that it reads and writes is one call.
            self._deadline.bound(dialled)
            bundle = verify if isinstance(verify, str) else DEFAULT_CA_BUNDLE_PATH
            return _tls_context(bundle).wrap_socket(
                dialled, server_hostname=self._target.host.rstrip(".")
            )
        except BaseException:
            dialled.close()
            raise


@functools.lru_cache(maxsize=4)
def _tls_context(ca_bundle: str) -> ssl.SSLContext:
    # Reading the authorities takes far longer than an exchange.
    context = ssl.create_default_context(cafile=ca_bundle)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _prepare(
    target: Target, *, body: bytes, headers: Mapping[str, str]
) -> requests.PreparedRequest:
    sent = {"Host": target.authority, **headers, **_OWN_HEADERS}
    for name, value in sent.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise InvalidUrl(f"the header {name!r} is not printable ASCII")
    return requests.Request("POST", target.url, data=body, headers=sent).prepare()


def _as_sent(request: requests.PreparedRequest) -> bytes:
    lines = [f"{request.method} {request.path_url} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    head = "\r\n".join([*lines, "", ""]).encode("ascii")
    return head + cast(bytes, request.body or b"")


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
    """The first bytes of the body.

    It decides nothing, so nothing that is wrong with it matters.
    """
    raw = cast(http.client.HTTPResponse, response.raw)
    kept = bytearray()
    # Some versions of http.client read on after the length that was announced, until the receiver hangs up.
    wanted = min(EXCERPT_BYTES, raw.length or EXCERPT_BYTES)
    with contextlib.suppress(Exception):
        while len(kept) < wanted:
            part = raw.read1(wanted - len(kept))
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
    if isinstance(error, ssl.SSLCertVerificationError):
        return Failure.TLS, f"the certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return (
            Failure.TLS,
            f"TLS failed: {(error.reason or 'unknown').lower().replace('_', ' ')}",
        )
    if isinstance(error, TimeoutError):
        return Failure.DEADLINE, ""
    if isinstance(error, http.client.RemoteDisconnected):
        return (
            Failure.NETWORK,
            "the receiver closed the connection without an answer",
        )
    if isinstance(error, http.client.HTTPException):
        return Failure.NETWORK, f"the answer is not HTTP: {type(error).__name__}"
    if isinstance(error, OSError) and error.strerror:
        return Failure.NETWORK, f"the connection broke: {error.strerror}"
    return Failure.UNEXPECTED, f"unexpected {type(error).__name__} while sending"
