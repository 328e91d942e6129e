"""The web server as a load balancer sees it: one thread, whose database connection stays open between requests."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request

from tests.acceptance.product import Product, await_true

_REQUEST_WITHIN = 30.0


def free_port() -> int:
    """A port of this machine that nobody uses just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Web:
    """A process that serves ``acw.wsgi``."""

    def __init__(self, product: Product) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.process = product.start(
            "shell",
            "--no-imports",
            "-c",
            "from wsgiref.simple_server import make_server; from acw.wsgi import application; "
            f"make_server('127.0.0.1', {port}, application).serve_forever()",
        )

    def status(self, path: str = "/readyz") -> int:
        """The status of an answer; 0 where there is none."""
        try:
            with urllib.request.urlopen(  # noqa: S310 (our own address)
                self.url + path, timeout=_REQUEST_WITHIN
            ) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except OSError:
            return 0

    def await_status(self, wanted: int, path: str = "/readyz") -> None:
        """Wait until it answers so."""
        await_true(
            lambda: self.status(path) == wanted,
            f"{path} answers {wanted}",
            evidence=self.process.text,
        )
