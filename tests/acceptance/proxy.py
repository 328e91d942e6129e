"""A TCP proxy on loopback in front of a server's Unix socket, which misbehaves as networks do."""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

_CHUNK = 65_536
_JOIN_WITHIN = 10.0

# <asm-generic/socket.h>; Python has no names for them.
_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27
# One instruction of the classic packet filter: return 0, keep nothing of the packet.
_DROP = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
_DROP_ALL = struct.pack("HL", 1, ctypes.addressof(_DROP))
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Proxy:
    """Forwards each connection to ``target``, a Unix socket, until it is told otherwise.

    ``budget`` says after how many bytes, of both directions together, a new connection is cut; None: never.
    """

    def __init__(self, target: Path) -> None:
        self.cuts = 0
        self.budget: Callable[[], int | None] = lambda: None
        self._target = str(target)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._links: set[_Link] = set()
        self._threads: list[threading.Thread] = []
        self._passing = threading.Event()
        self._passing.set()
        self._swallowing = False
        self._closed = False

    def __enter__(self) -> Proxy:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed = True
        self.heal()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for link in self._open_links():
            link.close()
        for thread in self._threads:
            thread.join(_JOIN_WITHIN)
        self._listener.close()

    def black_hole(self) -> None:
        """From now on no packet arrives, in either direction, and none is acknowledged: nobody is told of it."""
        with self._lock:
            self._passing.clear()
            for each in (self._listener, *(link.client for link in self._links)):
                with suppress(OSError):  # closed in this moment
                    each.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, _DROP_ALL)

    def swallow(self) -> None:
        """From now on everything is taken and acknowledged, and nothing is passed on: a peer that hangs."""
        self._swallowing = True

    def heal(self) -> None:
        """Be a good network again. What waited in the black hole arrives; what was swallowed is gone."""
        with self._lock:
            self._swallowing = False
            for each in (self._listener, *(link.client for link in self._links)):
                with suppress(OSError):
                    each.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
            self._passing.set()

    def cut(self) -> None:
        """Reset every connection that is open now."""
        for link in self._open_links():
            link.reset()

    def _open_links(self) -> list[_Link]:
        with self._lock:
            return list(self._links)

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                server.connect(self._target)
            except OSError:
                server.close()
                client.close()
                continue
            link = _Link(client, server, self.budget())
            with self._lock:
                self._links.add(link)
            self._start(lambda link=link: self._pump(link, link.client, link.server))  # type: ignore[misc]
            self._start(lambda link=link: self._pump(link, link.server, link.client))  # type: ignore[misc]

    def _pump(self, link: _Link, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(_CHUNK):
                self._passing.wait()
                if self._swallowing:
                    continue
                allowed = link.spend(len(data))
                target.sendall(data[:allowed])
                if allowed < len(data):
                    self.cuts += link.reset()
        except OSError:
            pass  # the other direction has closed it
        finally:
            with self._lock:
                self._links.discard(link)
            link.close()


class _Link:
    """The two sockets of one connection."""

    def __init__(
        self, client: socket.socket, server: socket.socket, budget: int | None
    ) -> None:
        self.client = client
        self.server = server
        self._budget = budget
        self._lock = threading.Lock()
        self._open = True

    def spend(self, size: int) -> int:
        """How many of so many bytes may still pass."""
        with self._lock:
            if self._budget is None:
                return size
            allowed = min(size, self._budget)
            self._budget -= allowed
            return allowed

    def reset(self) -> bool:
        """Close both ends at once, as by a router that has lost the connection; false where they were closed already."""
        for each in (self.client, self.server):
            with suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        # A peer is told of the end of what it is sent, and must not be: reading alone is ended.
        return self.close(socket.SHUT_RD)

    def close(self, how: int = socket.SHUT_RDWR) -> bool:
        with self._lock:
            was_open, self._open = self._open, False
        for each in (self.client, self.server) if was_open else ():
            # Wakes the thread that waits in recv(), which close() alone does not.
            with suppress(OSError):
                each.shutdown(how)
            each.close()
        return was_open
