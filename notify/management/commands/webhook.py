"""``manage.py webhook``: webhook endpoints, without a browser."""

from __future__ import annotations

from jobs.command_line import VerbsCommand
from notify.commands.adding import ADD
from notify.commands.checking import DOCTOR
from notify.commands.listing import LIST
from notify.commands.recovering import RECOVER
from notify.commands.reencrypting import REENCRYPT
from notify.commands.resending import RESEND
from notify.commands.rotating import ABANDON, PROMOTE, RETIRE, ROTATE
from notify.commands.switching import DISABLE, ENABLE, RESUME
from notify.commands.testing import TEST

VERBS = (
    LIST,
    ADD,
    TEST,
    DOCTOR,
    ENABLE,
    DISABLE,
    RESUME,
    RESEND,
    RECOVER,
    ROTATE,
    PROMOTE,
    RETIRE,
    ABANDON,
    REENCRYPT,
)


class Command(VerbsCommand):
    help = "Webhook endpoints: list, add, test and switch them, change their secrets and keys, and send what died again."
    verbs = VERBS
