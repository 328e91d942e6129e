"""A forge on the loopback that answers every request with one status, for what git makes of that."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Answer(BaseHTTPRequestHandler):
    status = 401
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(f"{self.path} {self.headers.get('Authorization', '')}")
        self.send_response(self.status)
        if self.status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="forge"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (theirs)
        pass


@contextlib.contextmanager
def answering(status: int, *, asked: list[str] | None = None) -> Iterator[str]:
    """The URL of a repository there; ``asked`` gets each path with what it was told to log in with."""
    attributes = {"status": status, "asked": [] if asked is None else asked}
    handler = type("Answer", (_Answer,), attributes)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/project"
        finally:
            server.shutdown()
            thread.join()
