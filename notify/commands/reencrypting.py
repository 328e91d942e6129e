"""`webhook reencrypt`."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError

from jobs.command_line import Options, Verb, actor
from notify.exceptions import EncryptionError
from notify.reencrypting import reencrypt


def _run(command: BaseCommand, options: Options) -> None:
    try:
        found = reencrypt(actor=actor())
    except EncryptionError as error:
        raise CommandError(str(error)) from None
    command.stdout.write(
        f"Encrypted anew, with the first of ACW_ENCRYPTION_KEYS: {len(found.done):,}."
    )
    if found.unreadable:
        raise CommandError(
            f"no key decrypts all that is stored for: {', '.join(found.unreadable)}. Add the key that it was encrypted "
            "with and do this again, or set the secret and the headers anew"
        )
    command.stdout.write(
        "No other key is needed, once no process runs that has another in front."
    )


REENCRYPT = Verb(
    name="reencrypt",
    help="put all that is encrypted under the first of ACW_ENCRYPTION_KEYS; exit status 1 where something cannot be read",
    add_arguments=lambda _: None,
    run=_run,
)
