"""Rows that are in the way while a queue drains: SQL that makes 1,000,000 of them, for test D.

Before it one job was enqueued through the queue's own API; where the rows copy it, the SQL removes it afterwards.
"""

from __future__ import annotations

STEADY_CLONE = """
WITH new AS (
    INSERT INTO steady_queue_job
        (created_at, updated_at, queue_name, class_name, arguments, priority, scheduled_at)
    SELECT now(), now(), queue_name, class_name, arguments, priority, now()
    FROM (SELECT * FROM steady_queue_job WHERE finished_at IS NULL AND scheduled_at <= now()
          ORDER BY id DESC LIMIT 1) one, generate_series(1, %s)
    RETURNING id, queue_name, priority)
INSERT INTO steady_queue_readyexecution (created_at, queue_name, priority, job_id)
SELECT now(), queue_name, priority, id FROM new"""

_ACW_ROWS = """
INSERT INTO jobs (id, type, payload, status, attempts, lease_seq, last_error, run_at, created_at,
                  started_at, completed_at)
SELECT uuidv7(), '{type}', '{{"t": 0}}', '{status}', {attempts}, {attempts}, '{error}', {at}, now(),
       {started}, {finished}
FROM generate_series(1, 1000000);
DELETE FROM jobs WHERE status = 'pending' AND run_at <= now();"""


def _acw_rows(status: str, *, attempts: int, error: str = "") -> str:
    ended = "now() - interval '1 day'"
    return _ACW_ROWS.format(
        type="bench.noop",
        status=status,
        attempts=attempts,
        error=error,
        at=ended,
        started=ended,
        finished=ended,
    )


ACW_COMPLETED = _acw_rows("completed", attempts=1)
ACW_DEAD = _acw_rows("dead", attempts=5, error="ValueError: seeded")
ACW_FUTURE = _ACW_ROWS.format(
    type="bench.noop",
    status="pending",
    attempts=0,
    error="",
    at="now() + interval '1 day'",
    started="NULL",
    finished="NULL",
)

_OX_COPIED = (
    "task_path, args, kwargs, queue_name, priority, takes_context, backend_name, max_attempts,"
    " errors, lease_epoch"
)
OX_DONE = f"""
INSERT INTO django_ox_oxtask ({_OX_COPIED}, id, status, attempts, worker_ids, return_value, enqueued_at,
                              started_at, last_attempted_at, finished_at)
SELECT {_OX_COPIED}, gen_random_uuid(), 'SUCCESSFUL', 1, '["seeded"]', 'null', now() - interval '1 day',
       now() - interval '1 day', now() - interval '1 day', now() - interval '1 day'
FROM django_ox_oxtask, generate_series(1, 1000000);
DELETE FROM django_ox_oxtask WHERE status = 'READY';"""
OX_FUTURE = f"""
INSERT INTO django_ox_oxtask ({_OX_COPIED}, id, status, attempts, worker_ids, enqueued_at, run_after)
SELECT {_OX_COPIED}, gen_random_uuid(), status, 0, worker_ids, now(), now() + interval '1 day'
FROM django_ox_oxtask, generate_series(1, 1000000);
DELETE FROM django_ox_oxtask WHERE run_after IS NULL;"""

_STEADY_COPIED = "queue_name, class_name, arguments, priority"
_STEADY_REST = """
DELETE FROM steady_queue_readyexecution;
DELETE FROM steady_queue_job WHERE finished_at IS NULL AND scheduled_at <= now();"""
STEADY_DONE = f"""
INSERT INTO steady_queue_job (created_at, updated_at, {_STEADY_COPIED}, scheduled_at, finished_at)
SELECT now(), now(), {_STEADY_COPIED}, now(), now() FROM steady_queue_job, generate_series(1, 1000000);
{_STEADY_REST}"""
STEADY_FUTURE = f"""
WITH new AS (
    INSERT INTO steady_queue_job (created_at, updated_at, {_STEADY_COPIED}, scheduled_at)
    SELECT now(), now(), {_STEADY_COPIED}, now() + interval '1 day'
    FROM steady_queue_job, generate_series(1, 1000000)
    RETURNING id, queue_name, priority, scheduled_at)
INSERT INTO steady_queue_scheduledexecution (created_at, queue_name, priority, scheduled_at, job_id)
SELECT now(), queue_name, priority, scheduled_at, id FROM new;
{_STEADY_REST}"""

# An hour: its pruner removes what completed a day ago.
OBAN_DONE = """
INSERT INTO oban_jobs (state, worker, attempt, args, attempted_by, attempted_at, completed_at)
SELECT 'completed', 'oban_jobs.Noop', 1, '{"t": 0}', ARRAY['seeded'],
       timezone('UTC', now()) - interval '1 hour', timezone('UTC', now()) - interval '1 hour'
FROM generate_series(1, 1000000);
DELETE FROM oban_jobs WHERE state = 'available';"""
OBAN_FUTURE = """
INSERT INTO oban_jobs (state, worker, args, scheduled_at)
SELECT 'scheduled', 'oban_jobs.Noop', '{"t": 0}', timezone('UTC', now()) + interval '1 day'
FROM generate_series(1, 1000000);
DELETE FROM oban_jobs WHERE state = 'available';"""
