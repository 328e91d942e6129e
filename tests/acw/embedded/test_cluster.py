from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from acw.embedded import postmaster
from acw.embedded.cluster import Cluster
from acw.embedded.errors import ClusterError
from tests.cluster import THROWAWAY

USE_UNTIL_TOLD = """
import sys
from pathlib import Path
from acw.embedded.cluster import Cluster
cluster = Cluster(Path(sys.argv[1]), settings={"fsync": "off"})
cluster.ensure_running()
print(cluster.is_running(), flush=True)
sys.stdin.readline()
"""


def start_user(data_dir: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", USE_UNTIL_TOLD, str(data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def wait_until_it_uses(user: subprocess.Popen[bytes]) -> None:
    assert user.stdout
    assert user.stdout.readline() == b"True\n"


def let_it_end(user: subprocess.Popen[bytes]) -> None:
    user.communicate(b"\n")
    assert user.returncode == 0


def answer(cluster: Cluster, *, database: str = "postgres") -> int:
    with cluster.connect(database) as connection:
        row = connection.execute("SELECT 42").fetchone()
    assert row is not None
    return int(row[0])


def server_pid(cluster: Cluster) -> int:
    server = postmaster.read(cluster.data_dir)
    assert server is not None
    return server.pid


def kill_server(cluster: Cluster) -> None:
    pidfd = os.pidfd_open(server_pid(cluster))
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        gone, _, _ = select.select([pidfd], [], [], 10)
        assert gone
    finally:
        os.close(pidfd)


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    """One server for the tests that leave it usable."""
    with tempfile.TemporaryDirectory(prefix="acw-cluster-") as directory:
        cluster = Cluster(
            Path(directory) / "with space, and comma" / "postgres",
            database="acw",
            settings=THROWAWAY,
        )
        yield cluster
        cluster.release()
        cluster.stop("immediate")


@pytest.fixture
def cluster(shared: Cluster) -> Cluster:
    shared.ensure_running()
    return shared


def test_answers_in_the_database_that_was_asked_for(cluster: Cluster):
    assert cluster.is_running()
    assert answer(cluster, database="acw") == 42


def test_listens_to_no_network(cluster: Cluster):
    with cluster.connect() as connection:
        row = connection.execute("SHOW listen_addresses").fetchone()
    assert row == ("",)


def test_settings_reach_the_server(cluster: Cluster):
    with cluster.connect() as connection:
        row = connection.execute("SHOW fsync").fetchone()
    assert row == ("off",)


def test_a_running_server_is_left_alone(cluster: Cluster):
    before = server_pid(cluster)
    cluster.ensure_running()
    assert server_pid(cluster) == before


def test_a_stopped_server_is_started_again(cluster: Cluster):
    cluster.stop()
    assert not cluster.is_running()
    with pytest.raises(ClusterError, match="does not run"):
        cluster.connection_parameters()
    cluster.ensure_running()
    assert answer(cluster) == 42


def test_a_socket_directory_apart_goes_with_the_server(cluster: Cluster):
    sockets = Path(cluster.connection_parameters()["host"])
    assert sockets != cluster.data_dir
    cluster.stop()
    assert not sockets.exists()


def test_stopping_a_stopped_server_is_fine(cluster: Cluster):
    cluster.stop()
    cluster.stop()
    assert not cluster.is_running()


def test_a_way_that_was_closed_meanwhile_does_not_keep_it_running(cluster: Cluster):
    cluster.data_dir.parent.chmod(0o700)
    cluster.stop()
    assert not cluster.is_running()


def test_a_server_that_does_not_stop_is_an_error(
    cluster: Cluster,
):
    with pytest.raises(ClusterError, match=r"did not stop.*unrecognized shutdown mode"):
        cluster.stop("gently")


def test_restart_gives_another_server_with_the_same_data(cluster: Cluster):
    before = server_pid(cluster)
    cluster.restart()
    assert server_pid(cluster) != before
    assert answer(cluster, database="acw") == 42


def test_a_killed_server_is_started_again(cluster: Cluster):
    # A backend that is busy with a session outlives its server for a moment.
    with cluster.connect():
        kill_server(cluster)
        assert not cluster.is_running()
        cluster.ensure_running()
    assert answer(cluster) == 42


def test_a_pid_taken_over_by_another_program_does_not_stop_a_start(cluster: Cluster):
    pid_file = cluster.data_dir / "postmaster.pid"
    kill_server(cluster)
    lines = pid_file.read_text().splitlines()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    cluster.ensure_running()
    assert answer(cluster) == 42


def test_other_users_keep_the_server_and_the_last_one_stops_it(cluster: Cluster):
    with start_user(cluster.data_dir) as user:
        wait_until_it_uses(user)
        assert not cluster.release()
        assert cluster.is_running()
        let_it_end(user)
    assert not cluster.is_running()


def test_a_killed_user_does_not_keep_the_server(cluster: Cluster):
    with start_user(cluster.data_dir) as user:
        wait_until_it_uses(user)
        user.kill()
        user.wait()
    assert cluster.release()
    assert not cluster.is_running()


def test_a_server_that_cannot_start_says_what_it_logged(cluster: Cluster):
    cluster.stop()
    unwilling = Cluster(cluster.data_dir, settings={"max_connections": "many"})
    with pytest.raises(ClusterError, match="max_connections"):
        unwilling.ensure_running()
    unwilling.release()


def test_another_majors_data_is_refused_with_the_way_out(cluster: Cluster):
    cluster.stop()
    version_file = cluster.data_dir / "PG_VERSION"
    kept = version_file.read_text()
    version_file.write_text("16\n")
    try:
        with pytest.raises(ClusterError, match=r"made by PostgreSQL 16.*pg_dump"):
            cluster.ensure_running()
    finally:
        version_file.write_text(kept)


def test_two_processes_may_make_it_at_once(tmp_path: Path):
    data_dir = tmp_path / "postgres"
    with start_user(data_dir) as first, start_user(data_dir) as second:
        wait_until_it_uses(first)
        wait_until_it_uses(second)
        let_it_end(first)
        assert Cluster(data_dir).is_running()
        let_it_end(second)
    assert not Cluster(data_dir).is_running()


def test_what_an_interrupted_making_left_is_no_hindrance(tmp_path: Path):
    leftover = tmp_path / "postgres.new"
    leftover.mkdir()
    (leftover / "PG_VERSION").write_text("18\n")
    cluster = Cluster(tmp_path / "postgres", settings=THROWAWAY)
    cluster.ensure_running()
    assert answer(cluster) == 42
    assert not leftover.exists()
    assert cluster.release()


def test_a_directory_with_something_else_in_it_is_left_alone(tmp_path: Path):
    data_dir = tmp_path / "postgres"
    data_dir.mkdir()
    (data_dir / "letter").write_text("dear")
    cluster = Cluster(data_dir, settings=THROWAWAY)
    with pytest.raises(ClusterError, match=f"{data_dir} cannot be made"):
        cluster.ensure_running()
    assert (data_dir / "letter").read_text() == "dear"


@pytest.mark.parametrize("name", ['quo"te', "dol$lar", "back`tick"])
def test_a_path_that_a_shell_would_misread_is_refused(tmp_path: Path, name: str):
    with pytest.raises(ClusterError, match="ACW_STATE_DIR"):
        Cluster(tmp_path / name / "postgres").ensure_running()


def test_a_parent_that_cannot_be_made_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(ClusterError, match="file/below cannot be made"):
        Cluster(tmp_path / "file" / "below" / "postgres").ensure_running()
