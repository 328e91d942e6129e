"""Run as a module: does each of what its arguments name in a process of its own, which kills itself at that point.

The first argument is a conversation's id; of each process, the status is printed.
"""

from __future__ import annotations

import datetime as dt
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import django

from tests.workspaces.mortal import in_a_child


def _die(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def _after(wrapped: Callable[..., Any]) -> Callable[..., Any]:
    def dying(*args: Any, **options: Any) -> Any:
        wrapped(*args, **options)
        _die()

    return dying


def _do(what: str, conversation_id: int) -> None:
    from django.core.files.base import ContentFile
    from django.core.files.storage import FileSystemStorage

    from workspaces import attachments
    from workspaces.models import Attachment, Conversation
    from workspaces.storing import cleanup, sweep
    from workspaces.storing.storage import AttachmentStorage, attachment_storage

    verb, _, point = what.partition(": ")
    if point == "half its bytes":
        chunks = ContentFile.chunks

        def half(self: Any, *args: Any) -> Any:
            yield next(iter(chunks(self, *args)))
            _die()

        storage_class: Any = FileSystemStorage
        write = storage_class._save

        def save(self: Any, name: str, content: Any) -> Any:
            halved = ContentFile(b"xx")
            halved.chunks = lambda *_: half(halved)  # type: ignore[method-assign]
            return write(self, name, halved)

        storage_class._save = save
    elif point == "before its row":
        Attachment.save = _die  # type: ignore[method-assign]
    elif point == "before its commit" and verb == "attach":
        Attachment.save = _after(Attachment.save)  # type: ignore[method-assign]
    elif point == "before its commit":
        type(Attachment.objects.all()).delete = _after(  # type: ignore[method-assign]
            type(Attachment.objects.all()).delete
        )
    else:
        AttachmentStorage.delete = _die  # type: ignore[method-assign]

    if verb == "attach":
        attachments.attach(
            Conversation.objects.get(pk=conversation_id), name="a", content=b"x"
        )
    elif verb == "clean_up":
        cleanup.clean_up()
    else:
        name = attachment_storage().save("ab/unrecorded", ContentFile(b"x"))
        then = time.time() - 40 * 86_400
        os.utime(attachment_storage().path(name), (then, then))
        sweep.sweep(dt.timedelta(days=30), stop=lambda: False)


def _main() -> None:
    django.setup()
    conversation_id = int(sys.argv[1])
    for what in sys.argv[2:]:
        in_a_child(partial(_do, what, conversation_id))


if __name__ == "__main__":
    _main()
