"""Opening a connection to a receiver, under the address policy.

The name is looked up once, every answer is checked, and the connection goes to an address that was
checked: a name that changes its answer in between (rebinding) gains nothing.
"""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from notify import addresses
from notify.addresses import Network
from notify.deadline import Deadline
from notify.exchange import Failure
from notify.stopwatch import Stopwatch
from notify.targets import Target

MAX_TRIED = 3
"""How many of a name's addresses are tried; how many there are is the receiver's choice."""

AddressInfo = tuple[Any, Any, int, str, tuple[Any, ...]]
Resolver = Callable[[str, int], Sequence[AddressInfo]]


class DialFailed(Exception):
    """No connection; ``failure`` says at which step, the message says why.

    Not an OSError, so that no HTTP library takes it for a connection to try again.
    """

    def __init__(self, failure: Failure, cause: str) -> None:
        self.failure = failure
        super().__init__(cause)


def look_up(host: str, port: int) -> Sequence[AddressInfo]:
    """The system's answers for a name."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


class Dialer:
    """Dials one target once; ``peer`` is then the address that it reached."""

    def __init__(
        self,
        target: Target,
        *,
        allowed: Sequence[Network],
        deadline: Deadline,
        resolver: Resolver = look_up,
        stopwatch: Stopwatch | None = None,
    ) -> None:
        self.peer: str | None = None
        self._target = target
        self._port = target.port or (443 if target.scheme == "https" else 80)
        self._allowed = allowed
        self._deadline = deadline
        self._resolver = resolver
        self._stopwatch = stopwatch or Stopwatch()

    def dial(self) -> socket.socket:
        """A connected socket. Raises :class:`DialFailed`."""
        answers = self._resolve()
        for answer in answers:
            self._check(answer[4][0])
        with self._stopwatch.measure("connect_ms"):
            return self._connect_to_one(answers)

    def _connect_to_one(self, answers: Sequence[AddressInfo]) -> socket.socket:
        tried = answers[:MAX_TRIED]
        failed = ""
        for number, answer in enumerate(tried):
            # Each gets a share, so that one that swallows packets leaves time for the next.
            share = self._deadline.left / (len(tried) - number)
            try:
                return self._connect(answer, timeout=share)
            except OSError as error:
                reason = (
                    "no answer" if isinstance(error, TimeoutError) else error.strerror
                )
                failed = f"cannot connect to {answer[4][0]} port {self._port}: {reason}"
        if self._deadline.passed:
            raise DialFailed(Failure.DEADLINE, f"{failed} within the time given")
        raise DialFailed(Failure.CONNECT, failed)

    def _resolve(self) -> Sequence[AddressInfo]:
        # An address that is written out is never asked for, so that nothing of it can take long.
        with suppress(socket.gaierror, UnicodeError):
            return socket.getaddrinfo(
                self._target.host,
                self._port,
                type=socket.SOCK_STREAM,
                flags=socket.AI_NUMERICHOST,
            )
        with self._stopwatch.measure("dns_ms"):
            return self._look_up()

    def _look_up(self) -> Sequence[AddressInfo]:
        """The name's addresses; looked up in a thread of its own, since no look-up can be given a time limit."""
        found: queue.SimpleQueue[Sequence[AddressInfo] | Exception] = (
            queue.SimpleQueue()
        )

        def resolve() -> None:
            try:
                found.put(self._resolver(self._target.host, self._port))
            except Exception as error:  # handed to the thread that waits
                found.put(error)

        # Daemonic: a name server that hangs must not hold up the end of the process.
        threading.Thread(target=resolve, name="webhook-look-up", daemon=True).start()
        try:
            answers = found.get(timeout=self._deadline.left)
        except queue.Empty:
            raise DialFailed(
                Failure.DEADLINE,
                f"looking up {self._target.host} took longer than the time given",
            ) from None
        if isinstance(answers, Exception):
            reason = getattr(answers, "strerror", None) or type(answers).__name__
            raise DialFailed(
                Failure.DNS, f"cannot look up {self._target.host}: {reason}"
            ) from None
        if not answers:
            raise DialFailed(Failure.DNS, f"{self._target.host} has no address")
        return answers

    def _connect(self, answer: AddressInfo, *, timeout: float) -> socket.socket:
        family, kind, protocol, _, address = answer
        dialled = socket.socket(family, kind, protocol)
        try:
            dialled.settimeout(max(timeout, 0.001))
            dialled.connect(address)
            dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer = dialled.getpeername()[0]
            self._check(peer)
        except BaseException:
            dialled.close()
            raise
        self.peer = str(addresses.parse(peer))
        return dialled

    def _check(self, text: str) -> None:
        address = addresses.parse(text)
        if refusal := addresses.refusal(address, self._allowed):
            raise DialFailed(
                Failure.BLOCKED,
                f"{self._target.host} has the address {address}, and webhooks may not reach {refusal}; "
                "NOTIFY_WEBHOOK_ALLOW_NETWORKS can allow it",
            )
