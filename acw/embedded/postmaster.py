"""What the server's own file `postmaster.pid` tells about a running server."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

PORT = 5432  # of a Unix socket: part of its name, and no network port
SOCKET_NAME = f".s.PGSQL.{PORT}"

# No process can have this id, so that PostgreSQL takes the file for a dead server's.
_NOBODYS_PID = 2**31 - 1


@dataclass(frozen=True)
class Postmaster:
    """A server as its pid file describes it; it may be dead."""

    pid: int
    socket_dir: Path
    status: str

    @property
    def accepts(self) -> bool:
        """Whether the server is ready, and there."""
        if self.status != "ready":
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(str(self.socket_dir / SOCKET_NAME))
            except OSError:
                return False
        return True


def read(data_dir: Path) -> Postmaster | None:
    """Return what the file says, None where there is none or it is half written."""
    try:
        lines = (data_dir / "postmaster.pid").read_text().splitlines()
        return Postmaster(int(lines[0]), Path(lines[4]), lines[7].strip())
    except (FileNotFoundError, IndexError, ValueError):
        return None


def disown_stale_file(data_dir: Path) -> None:
    """Let a server start where the pid of a dead one now belongs to another program.

    PostgreSQL only asks whether that process exists. After a machine's restart it may,
    and in a container whose first process buries no dead it does, as a zombie. The pid
    is replaced and the file kept: PostgreSQL still reads in it which shared memory
    a surviving backend would be using.
    """
    path = data_dir / "postmaster.pid"
    try:
        lines = path.read_text().splitlines()
        command = Path(f"/proc/{int(lines[0])}/cmdline").read_bytes()
    except (OSError, IndexError, ValueError):
        return  # no file, no such process, or no /proc: PostgreSQL finds out by itself
    if b"postgres" in command:
        return
    path.write_text("\n".join([str(_NOBODYS_PID), *lines[1:]]) + "\n")
    if len(lines) > 4:
        (Path(lines[4]) / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)
