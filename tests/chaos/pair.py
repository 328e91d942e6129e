"""A failover pair: two servers of the test's own, the second a synchronous streaming standby of the first."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from acw.embedded import postmaster, programs, server_user
from acw.embedded.cluster import SUPERUSER, Cluster
from jobs.testing import wait_until

DATABASE = "acw"
# Nothing of it outlives the machine: a commit has to reach both servers, and no disk.
SETTINGS = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "on"}

_PATIENCE = 60.0
_STANDBY_NAME = "standby"


class Pair:
    """``primary`` takes the writes; ``standby`` has every commit before its client is told of it.

    ``settings`` are PostgreSQL's, for both. After :meth:`promote` the two have changed places.
    """

    def __init__(self, *, settings: Mapping[str, str] | None = None) -> None:
        # Not pytest's own: each of its runs closes what is above that to the servers' user.
        self._directory = Path(tempfile.mkdtemp(prefix="acw-pair-"))
        wanted = {**SETTINGS, **(settings or {})}
        self.primary = Cluster(
            self._directory / "a", database=DATABASE, settings=wanted
        )
        self.standby = Cluster(
            self._directory / "b", database=DATABASE, settings=wanted
        )
        self._both = (self.primary, self.standby)
        self._hosts: list[dict[str, str]] = []

    def start(self) -> None:
        """Start the primary, make the standby of it, and have commits wait for both from here on."""
        self.primary.ensure_running()
        self._copy_to_standby()
        self.standby.ensure_running()
        # Not before: until a standby is there, the first commit would wait for ever.
        _set(self.primary, "synchronous_standby_names", "*")
        wait_until(
            lambda: _ask(
                self.primary,
                "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'",
            ),
            "the standby replicates synchronously",
            timeout=_PATIENCE,
        )
        self._hosts = [each.connection_parameters() for each in self._both]

    def url(self, parameters: str = "") -> str:
        """``DATABASE_URL`` with both servers, in the same order for good; ``parameters`` go behind it."""
        hosts = ",".join(quote(where["host"], safe="") for where in self._hosts)
        ports = ",".join(where["port"] for where in self._hosts)
        url = f"postgresql:///{DATABASE}?user={SUPERUSER}&host={hosts}&port={ports}"
        return f"{url}&{parameters}" if parameters else url

    def kill_primary(self, how: str = "kill") -> None:
        """End the primary in one blow: ``kill`` all its processes at once, or stop it by a mode of ``pg_ctl``."""
        if how == "kill":
            _kill(self.primary)
        else:
            self.primary.stop(how)

    def retire_primary(self) -> None:
        """Leave the primary running, and let it take no more writes: also on connections that are open already."""
        _set(self.primary, "synchronous_standby_names", "")
        _set(self.primary, "default_transaction_read_only", "on")
        wait_until(
            lambda: _ask(
                self.primary,
                "SELECT current_setting('default_transaction_read_only') = 'on'",
            ),
            "the old primary is read-only",
            timeout=_PATIENCE,
        )

    def promote(self) -> None:
        """Make the standby the primary; returns once it takes writes."""
        promoted = programs.run(
            "pg_ctl",
            *("promote", "--wait", f"--timeout={_PATIENCE:.0f}", "--silent"),
            *("--pgdata", str(self.standby.data_dir)),
            user=server_user.for_data_dir(self.standby.data_dir),
        )
        if promoted.returncode != 0:
            raise AssertionError(f"the standby was not promoted: {promoted.stderr}")
        self.primary, self.standby = self.standby, self.primary

    def close(self) -> None:
        """Stop both and remove their files."""
        for cluster in self._both:
            cluster.stop("immediate")
            cluster.release()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _copy_to_standby(self) -> None:
        where = self.primary.connection_parameters()
        user = server_user.for_data_dir(self.standby.data_dir)
        target = self.standby.data_dir
        target.mkdir(mode=0o700)
        if user:
            os.chown(target, user.uid, user.gid)
        copied = programs.run(
            "pg_basebackup",
            *("--pgdata", str(target), "--checkpoint", "fast", "--no-sync"),
            *("--write-recovery-conf", "--wal-method", "stream"),
            "--dbname",
            f"host={where['host']} port={where['port']} user={where['user']}"
            f" application_name={_STANDBY_NAME}",
            user=user,
        )
        if copied.returncode != 0:
            raise AssertionError(f"no standby could be made: {copied.stderr}")
        # The primary's socket lies in its data directory, and so its lock was copied with it.
        (target / f"{postmaster.SOCKET_NAME}.lock").unlink(missing_ok=True)


def _set(cluster: Cluster, name: str, value: str) -> None:
    with cluster.connect() as connection:
        connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        connection.execute("SELECT pg_reload_conf()")


def _ask(cluster: Cluster, question: str) -> bool:
    with cluster.connect() as connection:
        row = connection.execute(question).fetchone()
    return bool(row and row[0])


def _kill(cluster: Cluster) -> None:
    server = postmaster.read(cluster.data_dir)
    assert server is not None, f"no server runs in {cluster.data_dir}"
    # The parent first, so that it cannot tidy up after its children.
    os.kill(server.pid, signal.SIGSTOP)
    victims = [server.pid, *_children(server.pid)]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    wait_until(
        lambda: not any(map(_lives, victims)),
        "the primary's processes are gone",
        timeout=_PATIENCE,
    )


def _children(parent: int) -> list[int]:
    processes = [int(e.name) for e in Path("/proc").iterdir() if e.name.isdecimal()]
    return [pid for pid in processes if _field(pid, 1) == str(parent)]


def _lives(pid: int) -> bool:
    return _field(pid, 0) not in {"", "Z", "X"}


def _field(pid: int, position: int) -> str:
    """A field of ``/proc/<pid>/stat`` behind the command's name: 0 is the state, 1 the parent; empty once it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[position]
