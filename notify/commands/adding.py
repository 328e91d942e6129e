"""`webhook add`."""

from __future__ import annotations

import argparse
from pathlib import Path

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from jobs.command_line import Options, Verb, actor, duration
from notify import endpoints, extra_headers, signing
from notify.commands.verb import given_line, given_secret, print_secret
from notify.exceptions import NotifyError
from notify.models.endpoint import IN_FLIGHT_DEFAULT

FROM_STDIN = "-"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument(
        "url",
        metavar="URL",
        help="- reads it from standard input, since other users see a command's arguments",
    )
    parser.add_argument(
        "--topics",
        default="",
        metavar="A,B",
        help="the events that it gets, with commas between them; worktree.* is every one that begins so, * every one",
    )
    parser.add_argument(
        "--timeout",
        type=duration,
        metavar="10s",
        help="over the whole exchange (default: NOTIFY_WEBHOOK_TIMEOUT)",
    )
    parser.add_argument(
        "--in-flight",
        type=int,
        default=IN_FLIGHT_DEFAULT,
        metavar="N",
        help="requests at one time, over all workers (default: %(default)s)",
    )
    parser.add_argument(
        "--headers-file",
        type=Path,
        metavar="FILE",
        help='headers of its own, one "Name: value" a line; a file, since other users see a command\'s arguments',
    )
    parser.add_argument(
        "--allow-checkup",
        action="store_true",
        help="its owner agrees to requests that it has to refuse: forged, altered, old",
    )
    parser.add_argument(
        "--secret-stdin",
        action="store_true",
        help="read the signing secret from standard input, where URL is - from its second line; without this one is "
        "made and printed once",
    )


def _run(command: BaseCommand, options: Options) -> None:
    given = options["secret_stdin"]
    url = given_line("URL") if options["url"] == FROM_STDIN else options["url"]
    secret = given_secret() if given else signing.new_secret()
    try:
        endpoint = endpoints.add(
            options["name"],
            url,
            topic_names=[
                name.strip() for name in options["topics"].split(",") if name.strip()
            ],
            secret=secret,
            actor=actor(),
            headers=_headers(options["headers_file"]),
            timeout=options["timeout"],
            max_in_flight=options["in_flight"],
            checkup_allowed=options["allow_checkup"],
        )
    except NotifyError as error:
        raise CommandError(str(error), returncode=2) from None
    except ValidationError as error:
        said = "; ".join(
            f"{field}: {' '.join(problems)}"
            for field, problems in error.message_dict.items()
        )
        raise CommandError(said, returncode=2) from None
    command.stdout.write(f"Added {endpoint.name}: {endpoint.target}")
    if not given:
        print_secret(command, secret)
    if not endpoint.topics:
        command.stdout.write("It has no topics yet, and gets no events.")


def _headers(file: Path | None) -> dict[str, str]:
    if file is None:
        return {}
    try:
        return extra_headers.parse(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(
            f"--headers-file: {file} cannot be read: {error.strerror}", returncode=2
        ) from None
    except UnicodeDecodeError:
        raise CommandError(
            f"--headers-file: {file} is not UTF-8 text", returncode=2
        ) from None


ADD = Verb(name="add", help="add an endpoint", add_arguments=_add_arguments, run=_run)
