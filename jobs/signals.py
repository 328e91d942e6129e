"""The signals by which news goes up from the queue, which knows nobody above it.

Both are sent in the transaction of what they report, with ``sender=Job``.

``job_dead``
    A job went ``dead``. ``job`` (:class:`~jobs.models.Job`, as written), ``error`` (str). A receiver that fails is
    logged as ``job.dead_receiver_failed``, and the job is dead all the same. Receivers that write are to be
    decorated with ``transaction.atomic``, so that a failed one undoes its own work and nobody else's.
``operator_acted``
    An operator changed a job or a runner. ``actor`` (str: a user's name, or who ran the command), ``action``
    (str, e.g. ``job.retry``), ``target`` (str, e.g. ``job:<id>``), ``data`` (dict). A receiver that fails undoes
    the action: what is not audited does not happen.
"""

from __future__ import annotations

from django.dispatch import Signal

job_dead = Signal()
operator_acted = Signal()
