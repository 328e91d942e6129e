from __future__ import annotations

import socket
from pathlib import Path

from acw.benchmark.children import Child
from acw.benchmark.receiver import ANSWER
from acw.benchmark.scratch import Scratch


def post(port: int, event: str, *, in_pieces: bool = False) -> bytes:
    """One request by hand, and the whole answer."""
    head = (
        f"POST /hook HTTP/1.1\r\nX-ACW-Event-Id: {event}\r\nContent-Length: 4\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pieces = [head[:9], head[9:], "bo", "dy"] if in_pieces else [head + "body"]
        for piece in pieces:
            connection.sendall(piece.encode())
        answer = b""
        while part := connection.recv(1_000):
            answer += part
    return answer


def test_it_answers_and_counts_requests_and_events(tmp_path: Path, scratch: Scratch):
    port_file = tmp_path / "port"
    with Child("acw.benchmark.receiver", [port_file], scratch.env()) as receiver:
        receiver.go()
        port = int(port_file.read_text())
        assert post(port, "one") == ANSWER
        assert post(port, "two", in_pieces=True) == ANSWER
        assert post(port, "one") == ANSWER
        receiver.go()
        assert receiver.result() == {"requests": 3, "events": 2}
