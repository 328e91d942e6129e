"""Everything at once, for trying ACW out: database, first user, demo, web and worker.

For development and demonstration. In production a WSGI server and `runjobs` each run
under a supervisor.
"""

from __future__ import annotations

import http.client
import os
import secrets
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connections

from acw import demo
from acw.embedded.base import server_of
from acw.foreground import Command, Foreground
from notify.recipients import admins
from workspaces.exceptions import WorkspacesError

ADMIN = "admin"
MANAGE = Path(__file__).resolve().parent.parent / "manage.py"

# Also with DATABASE_URL set, this web server speaks plain HTTP to this machine alone.
_WEB_DEFAULTS = {
    "ACW_HTTPS": "false",
    "ALLOWED_HOSTS": "localhost,127.0.0.1,[::1]",
    "DJANGO_RUNSERVER_HIDE_WARNING": "true",
}
# On top of JOBS_SHUTDOWN_GRACE, for what the worker still has to write down.
_GRACE_MARGIN_SECONDS = 10
_PROBE_SECONDS = 2
_LAST_USERS_SECONDS = 2


class AddressError(Exception):
    """Nothing can listen there; the message says why, and what to do."""


class Quickstart:
    """One run, from the check of the address to the end of the database server."""

    def __init__(self, *, host: str, port: int, say: Callable[[str], None]) -> None:
        self._host = host
        self._port = port
        self._say = say
        grace = settings.JOBS_SHUTDOWN_GRACE.total_seconds() + _GRACE_MARGIN_SECONDS
        self._foreground = Foreground(say=self._step, grace=grace)

    def run(self) -> int:
        """Run until a signal, and return the exit status.

        Raises AddressError, before anything is started.
        """
        check_address(self._host, self._port)
        with self._foreground.heeding_signals():
            try:
                for prepare in (self._migrate, self._make_admin, self._build_demo):
                    if self._foreground.signals_taken:
                        return 0
                    prepare()
                return self._serve()
            finally:
                self._stop_database()

    def _migrate(self) -> None:
        if settings.EMBEDDED:
            directory = server_of(settings.DATABASES["default"]).data_dir
            self._step(f"Starting PostgreSQL, with its files in {_shown(directory)}")
        self._step("Bringing the database's tables up to date")
        call_command("migrate", interactive=False, verbosity=0)

    def _make_admin(self) -> None:
        if admins():
            return
        if User.objects.filter(username=ADMIN).exists():
            self._step(
                f"No active superuser, and {ADMIN!r} is taken: make one with"
                " .venv/bin/python manage.py createsuperuser"
            )
            return
        password = secrets.token_urlsafe(12)
        User.objects.create_superuser(ADMIN, password=password)
        self._step(f"Made the user {ADMIN} with the password {password}")
        self._say("    It is not shown again. `manage.py changepassword` changes it.")

    def _build_demo(self) -> None:
        owner = next(iter(admins()), None)
        if owner is None:
            return
        if "file" not in settings.ACW_GIT_PROTOCOLS:
            self._step(
                "Going on without the demo: ACW_GIT_PROTOCOLS does not have file"
            )
            return
        try:
            if demo.build(owner=owner):
                self._step(
                    "Made the workspace demo, of the repository in"
                    f" {_shown(demo.directory() / 'remote.git')}"
                )
        except WorkspacesError as error:
            self._step(f"Going on without the demo: {error}")

    def _serve(self) -> int:
        connections.close_all()  # this process asks the database nothing more
        host = f"[{self._host}]" if ":" in self._host else self._host
        for name, value in _WEB_DEFAULTS.items():
            os.environ.setdefault(name, value)
        web = ["runserver", "--noreload", "--skip-checks", f"{host}:{self._port}"]
        commands = [_manage("web", *web)]
        if settings.JOBS_ENABLED:
            commands.append(_manage("jobs", "runjobs"))
            self._step("Starting web server and worker")
        else:
            self._step("Starting the web server; no worker, as JOBS_ENABLED is false")
        self._foreground.start(commands)
        if self._foreground.wait_for(self._web_answers):
            self._say_how_to_use(f"http://{host}:{self._port}")
        return self._foreground.wait()

    def _web_answers(self) -> bool:
        # A server that listens everywhere also listens here.
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)  # noqa: S104
        web = http.client.HTTPConnection(host, self._port, timeout=_PROBE_SECONDS)
        try:
            web.request("GET", "/healthz")
            web.getresponse()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            web.close()
        return True

    def _say_how_to_use(self, url: str) -> None:
        self._step(
            "ACW is running. Ctrl-C stops it; the next run goes on with its data"
        )
        checkout = demo.directory() / "checkout"
        if checkout.exists():
            self._say(
                f"    A commit pushed from {_shown(checkout)} comes with the next fetch."
            )
        self._say(
            "    Commands: .venv/bin/python manage.py help (doctor, jobs, runners …)"
        )
        opened = settings.NOTIFY_WEBHOOK_ALLOW_NETWORKS
        if opened:
            self._say(
                f"    Webhooks may reach receivers in {', '.join(map(str, opened))}"
                " (NOTIFY_WEBHOOK_ALLOW_NETWORKS)."
            )
        self._say(f"    Inbox:    {url}/inbox/")
        self._say(f"    Console:  {url}/admin/")

    def _stop_database(self) -> None:
        if settings.EMBEDDED:
            connections.close_all()
            server = server_of(settings.DATABASES["default"])
            # A worker that was killed while it started git leaves a child which has its
            # files open for a moment longer.
            if server.release(patience=_LAST_USERS_SECONDS):
                self._step("PostgreSQL has stopped")

    def _step(self, text: str) -> None:
        self._say(f"==> {text}")


def check_address(host: str, port: int) -> None:
    """Raise AddressError unless the web server could listen there now."""
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )
        with socket.socket(family, kind, protocol) as probe:
            # As the web server does: a port that was in use a moment ago is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen()
    except OSError as error:
        raise AddressError(
            f"nothing can listen on {host} port {port}: {error.strerror or error}."
            f" Another port: make run PORT={port + 1}"
        ) from None


def _manage(name: str, *arguments: str) -> Command:
    # -u: their output is a pipe, and lines should come when they are written.
    return Command(name=name, arguments=[sys.executable, "-u", str(MANAGE), *arguments])


def _shown(path: Path) -> str:
    """The path as short as it can be typed here."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
