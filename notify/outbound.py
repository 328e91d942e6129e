"""The one module that opens HTTP: a single POST, to one receiver, within one deadline.

It follows no redirect, uses no proxy, password file or cookie of its surroundings, keeps no connection, and
decodes nothing. That is why ``requests.Session``, which does all of these, is not used: a prepared request goes
straight to an adapter that lives for one exchange.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import http
import http.client
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import requests
from requests.adapters import DEFAULT_CA_BUNDLE_PATH, BaseAdapter
from requests.structures import CaseInsensitiveDict

from notify import extra_headers, targets, trust
from notify.addresses import Network
from notify.deadline import Deadline, TimedSocket
from notify.dialing import Dialer, DialFailed, Resolver, look_up
from notify.exceptions import InvalidHeader, InvalidUrl, UnreadableBundle
from notify.exchange import Exchange, Failure
from notify.stopwatch import Stopwatch
from notify.targets import Target

EXCERPT_BYTES = 2_048
EXCERPT_SECONDS = 2.0
"""How long the answer's body is waited for, once the status is known."""

USER_AGENT = "ACW-Webhooks"

_HEADER_LIMIT = 200
_HUNG_UP = (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError)
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
    extra: Mapping[str, str] = MappingProxyType({}),
    allowed: Sequence[Network] = (),
    ca_bundle: str | None = None,
    resolver: Resolver = look_up,
) -> Exchange:
    """POST ``body`` once and return what came of it; raises nothing.

    ``timeout`` bounds everything up to the end of the answer's head. ``extra`` are headers of the endpoint's own;
    those with a name that is reserved are left out. ``allowed`` are networks that the address policy would refuse.
    ``ca_bundle`` is a file of certificates to trust in place of certifi's.
    """
    began = time.monotonic()
    deadline = Deadline(timeout.total_seconds())
    try:
        target = targets.parse(url)
        prepared = _prepare(target, body=body, headers=headers, extra=extra)
    except (InvalidUrl, InvalidHeader) as error:
        return Exchange(
            failure=Failure.INVALID, cause=str(error), duration=_since(began)
        )
    # Whatever the library dislikes about a request, it will dislike again.
    except Exception as error:
        cause = f"the request cannot be made: {type(error).__name__}"
        return Exchange(failure=Failure.INVALID, cause=cause, duration=_since(began))
    stopwatch = Stopwatch()
    dialer = Dialer(
        target,
        allowed=allowed,
        deadline=deadline,
        resolver=resolver,
        stopwatch=stopwatch,
    )
    adapter = _OneShot(target, dialer=dialer, deadline=deadline, stopwatch=stopwatch)
    try:
        with contextlib.closing(adapter):
            response = adapter.send(prepared, verify=ca_bundle or True)
            duration = _since(began)
            deadline.shorten(EXCERPT_SECONDS)
            return Exchange(
                status=response.status_code,
                duration=duration,
                phases=stopwatch.phases,
                peer=dialer.peer,
                retry_after=_header(response, "Retry-After"),
                date=_header(response, "Date"),
                certificate_until=adapter.certificate_until,
                redirect=_redirect(response, target),
                excerpt=_excerpt(response),
            )
    # Every way in which an exchange can end is an answer here.
    except Exception as error:
        failure, cause = _explain(error, deadline=deadline)
        if failure is Failure.DEADLINE and not cause:
            cause = f"no complete answer within {timeout.total_seconds():g} s"
        return Exchange(
            failure=failure,
            cause=cause,
            duration=_since(began),
            phases=stopwatch.phases,
            peer=dialer.peer,
            certificate_until=adapter.certificate_until,
        )


class _OneShot(BaseAdapter):
    """Sends one request over a connection that one dialer opens, and closes it when it is closed itself.

    Not requests' own adapter: what that sets up for connections to come takes longer than an exchange.
    """

    def __init__(
        self,
        target: Target,
        *,
        dialer: Dialer,
        deadline: Deadline,
        stopwatch: Stopwatch,
    ) -> None:
        super().__init__()
        self.certificate_until: dt.datetime | None = None
        self._target = target
        self._dialer = dialer
        self._deadline = deadline
        self._stopwatch = stopwatch
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
        with self._stopwatch.measure("answer_ms"):
            # It may have answered before it took all of the body: what it says counts.
            with contextlib.suppress(*_HUNG_UP):
                timed.sendall(_as_sent(request))
            raw = http.client.HTTPResponse(timed, method=request.method)  # type: ignore[arg-type]
            self._open.enter_context(raw)
            _read_head(raw)
        response = requests.Response()
        response.status_code = raw.status
        response.headers.update(raw.headers)
        response.raw = raw
        return response

    def close(self) -> None:
        self._open.close()

    def _connect(self, verify: Any) -> socket.socket:
        if self._target.scheme == "http":
            return self._dialer.dial()
        bundle = verify if isinstance(verify, str) else None
        context = trust.context(bundle, otherwise=DEFAULT_CA_BUNDLE_PATH)
        dialled = self._dialer.dial()
        try:
            with self._stopwatch.measure("tls_ms"):
                return self._shake_hands(dialled, context)
        except BaseException:
            dialled.close()
            raise

    def _shake_hands(
        self, dialled: socket.socket, context: ssl.SSLContext
    ) -> ssl.SSLSocket:
        # The handshake as a whole: all that it reads and writes is one call.
        self._deadline.bound(dialled)
        name = self._target.host.rstrip(".")
        secured = context.wrap_socket(dialled, server_hostname=name)
        self.certificate_until = _expiry(secured)
        return secured


def _expiry(secured: ssl.SSLSocket) -> dt.datetime | None:
    ends = (secured.getpeercert() or {}).get("notAfter")
    if not isinstance(ends, str):
        return None
    return dt.datetime.fromtimestamp(ssl.cert_time_to_seconds(ends), tz=dt.UTC)


def _read_head(raw: http.client.HTTPResponse) -> None:
    """Read up to the head of the final answer: http.client itself takes every interim one but 100 for that."""
    raw.begin()
    while (
        100 <= raw.status <= 199 and raw.status != http.HTTPStatus.SWITCHING_PROTOCOLS
    ):
        raw.headers = None  # type: ignore[assignment] # begin() reads another head then
        raw.begin()


def _prepare(
    target: Target,
    *,
    body: bytes,
    headers: Mapping[str, str],
    extra: Mapping[str, str],
) -> requests.PreparedRequest:
    length = {"Content-Length": str(len(body))}
    ours = {"Host": target.authority, **headers, **_OWN_HEADERS, **length}
    sent = extra_headers.permitted(extra) | ours
    for name, value in sent.items():
        extra_headers.check_characters(name, value)
    # Field by field: prepare() would take /a/../b for /b and %7E for ~, and half as long as the exchange itself.
    prepared = requests.PreparedRequest()
    prepared.method, prepared.url = "POST", target.url
    prepared.headers = CaseInsensitiveDict(sent)
    prepared.body = body
    return prepared


def _as_sent(request: requests.PreparedRequest) -> bytes:
    lines = [f"{request.method} {request.path_url} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    head = "\r\n".join([*lines, "", ""]).encode("ascii")
    return head + cast(bytes, request.body or b"")


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
    if isinstance(error, UnreadableBundle):
        return Failure.TLS, str(error)
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
