"""The whole of it, as `make run` runs it: real processes on an embedded server."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from acw import env
from acw.embedded.cluster import Cluster
from acw.management.commands import quickstart
from acw.quickstart import AddressError, check_address
from tests.cluster import THROWAWAY

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
    return number


@pytest.fixture
def start(state: Path, port: int) -> Iterator[Start]:
    """Start a quickstart with no variable of ACW's set but these."""
    started: list[subprocess.Popen[str]] = []

    def starter(**variables: str) -> subprocess.Popen[str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in env.VARIABLES
        }
        places = {"ACW_STATE_DIR": str(state), "ACW_DATA_DIR": str(state / "data")}
        process = subprocess.Popen(
            [sys.executable, "manage.py", "quickstart", "--port", str(port)],
            cwd=ROOT,
            env={**kept, "ACW_ENV_FILE": "", **places, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield starter
    for process in started:
        with process:
            process.terminate()
            process.communicate(timeout=60)


def read_until(process: subprocess.Popen[str], *texts: str) -> str:
    """Return what it prints, up to the line with which all of the texts have come."""
    assert process.stdout
    said = ""
    for line in process.stdout:
        said += line
        if all(text in said for text in texts):
            return said
    raise AssertionError(f"it ended without saying {texts}:\n{said}")


def stop(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str]:
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    return process.returncode, output


@contextmanager
def web(port: int) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        yield connection
    finally:
        connection.close()


def get(port: int, path: str) -> tuple[int, str]:
    with web(port) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()


def test_starts_everything_stops_everything_and_goes_on_with_the_data(
    start: Start, state: Path, port: int
):
    # A new workspace's first fetch is somewhere within an interval.
    first = start(JOBS_WORKSPACE_FETCH_INTERVAL="1s")
    said = read_until(first, "Console:", "jobs | ", "workspace.fetched")
    assert re.search(r"Made the user admin with the password \S{16}\n", said)
    assert "Made the workspace demo" in said
    assert "Webhooks may reach receivers in 127.0.0.0/8, ::1/128" in said
    own_lines = [line for line in said.splitlines() if " | " not in line]
    assert own_lines[-1].endswith(f" http://127.0.0.1:{port}/admin/")
    assert get(port, "/readyz") == (200, "ok\n")
    assert "ACW console" in get(port, "/admin/login/")[1]
    assert get(port, "/static/admin/css/base.css")[0] == 200

    status, said = stop(first, signal.SIGINT)
    assert status == 0
    assert "jobs.module.stopped" in said
    assert said.endswith("==> PostgreSQL has stopped\n")
    assert not Cluster(state / "postgres").is_running()

    second = start()
    said = read_until(second, "Console:")
    assert "password" not in said
    assert "Made the workspace" not in said
    status, _ = stop(second, signal.SIGTERM)
    assert status == 0


def test_when_the_worker_dies_the_rest_is_stopped(start: Start, state: Path, port: int):
    process = start()
    said = read_until(process, "Console:", "jobs.module.started")
    worker = re.search(r"jobs\.module\.started worker=[^:]*:(\d+):", said)
    assert worker
    os.kill(int(worker[1]), signal.SIGKILL)
    output, _ = process.communicate(timeout=60)
    assert "jobs has ended, with status -9: stopping the rest" in output
    assert output.endswith("==> PostgreSQL has stopped\n")
    assert process.returncode == 1
    assert not Cluster(state / "postgres").is_running()
    with pytest.raises(ConnectionRefusedError):
        get(port, "/healthz")


def test_without_jobs_there_is_only_the_web_server(start: Start):
    process = start(JOBS_ENABLED="false")
    said = read_until(process, "Console:")
    assert "no worker, as JOBS_ENABLED is false" in said
    assert "jobs | " not in said
    assert stop(process, signal.SIGTERM)[0] == 0


def test_runs_on_a_server_of_the_users_own(start: Start, state: Path, port: int):
    server = Cluster(state.with_name("own") / "postgres", settings=THROWAWAY)
    server.ensure_running()
    where = server.connection_parameters()
    process = start(
        DATABASE_URL=f"postgresql:///postgres?host={where['host']}&user={where['user']}",
        SECRET_KEY="signs-nothing",
        ACW_ENCRYPTION_KEYS=Fernet.generate_key().decode(),
    )
    said = read_until(process, "Console:")
    assert "without the demo: ACW_GIT_PROTOCOLS does not have file" in said
    assert get(port, "/admin/login/")[0] == 200  # and no redirect to HTTPS
    assert stop(process, signal.SIGTERM)[0] == 0
    assert server.is_running()
    assert server.release()


def test_a_port_in_use_is_an_error_before_anything_is_started(
    start: Start, state: Path, port: int
):
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        process = start()
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"port {port}: Address already in use" in output
    assert f"make run PORT={port + 1}" in output
    assert not (state / "postgres").exists()


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("192.0.2.1", "Cannot assign requested address"),
        (
            "no.such.host.invalid",
            "nothing can listen on no.such.host.invalid port 8000",
        ),
    ],
)
def test_an_address_that_is_not_of_this_host_is_refused(host: str, said: str):
    with pytest.raises(AddressError, match=said):
        check_address(host, 8000)


def test_a_free_address_is_accepted(port: int):
    check_address("127.0.0.1", port)


@pytest.mark.parametrize("text", ["0", "65536", "-1", "http", "٣"])
def test_a_port_that_is_none_is_refused(text: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        quickstart.Command().run_from_argv(
            ["manage.py", "quickstart", f"--port={text}"]
        )
    assert ended.value.code == 2
    assert "accepted: a number from 1 to 65535" in capsys.readouterr().err
