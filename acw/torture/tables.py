"""The tables in which a run is noted, beside the product's in the scratch schema.

``torture_transitions`` and ``torture_failures`` are written by triggers, in the transaction that changes a job's row: they are
what became of every lease, also of jobs whose row is gone. ``torture_executions`` is written by the handlers, on a connection of their own: it is what was
executed, also where that was rolled back or its process killed.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

_MAKE = """
CREATE TABLE {schema}.torture_produced (
    ref_id text PRIMARY KEY, batch bigint NOT NULL, type text NOT NULL, unique_key text,
    fate text NOT NULL CHECK (fate IN ('committed', 'rolled back', 'unknown', 'deduplicated'))
);

CREATE TABLE {schema}.torture_executions (
    id uuid PRIMARY KEY, job_id uuid NOT NULL, ref_id text, type text NOT NULL,
    lease_seq bigint NOT NULL, attempt integer NOT NULL, pid integer NOT NULL,
    begun_at timestamptz NOT NULL DEFAULT clock_timestamp(), ended_at timestamptz, ending text, error text
);
CREATE INDEX ON {schema}.torture_executions (job_id, lease_seq);

CREATE TABLE {schema}.torture_transitions (
    number bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(), job_id uuid NOT NULL,
    ref_id text, type text NOT NULL, unique_key text, max_attempts integer NOT NULL,
    old_status text, new_status text, old_lease bigint, new_lease bigint, leased_by text, lease_until timestamptz,
    old_attempts integer, new_attempts integer, due timestamptz, xact xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX ON {schema}.torture_transitions (ref_id);
CREATE INDEX ON {schema}.torture_transitions (job_id, old_lease);
CREATE INDEX ON {schema}.torture_transitions (job_id, new_lease);

CREATE TABLE {schema}.torture_failures (
    job_id uuid NOT NULL, number integer NOT NULL, error text NOT NULL, xact xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX ON {schema}.torture_failures (job_id);

CREATE TABLE {schema}.torture_effects (job_id uuid NOT NULL, lease_seq bigint NOT NULL, amount bigint NOT NULL);

-- A tick without a slot was begun when the schedule was another worker's by then.
CREATE TABLE {schema}.torture_ticks (
    id uuid PRIMARY KEY, slot timestamptz, pid integer NOT NULL,
    begun_at timestamptz NOT NULL DEFAULT clock_timestamp(), ended_at timestamptz
);
CREATE TABLE {schema}.torture_tick_ends (
    runner text NOT NULL, slot timestamptz NOT NULL, worker text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE {schema}.torture_faults (
    number integer PRIMARY KEY, at timestamptz NOT NULL, fault text NOT NULL, what text NOT NULL
);
CREATE TABLE {schema}.torture_processes (
    pid integer NOT NULL, started_at timestamptz NOT NULL, ended_at timestamptz NOT NULL, status integer NOT NULL,
    expected boolean NOT NULL, log text NOT NULL
);

CREATE FUNCTION {schema}.torture_note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE job {schema}.jobs;
BEGIN
    IF TG_OP = 'DELETE' THEN job := OLD; ELSE job := NEW; END IF;
    INSERT INTO {schema}.torture_transitions (
        job_id, ref_id, type, unique_key, max_attempts, old_status, new_status, old_lease, new_lease,
        leased_by, lease_until, old_attempts, new_attempts, due
    ) VALUES (
        job.id, job.ref_id, job.type, job.unique_key, job.max_attempts,
        CASE WHEN TG_OP <> 'INSERT' THEN OLD.status END, CASE WHEN TG_OP <> 'DELETE' THEN NEW.status END,
        CASE WHEN TG_OP <> 'INSERT' THEN OLD.lease_seq END, CASE WHEN TG_OP <> 'DELETE' THEN NEW.lease_seq END,
        CASE WHEN TG_OP = 'UPDATE' AND NEW.status = 'running' THEN NEW.leased_by
             WHEN TG_OP <> 'INSERT' THEN OLD.leased_by END,
        CASE WHEN TG_OP = 'UPDATE' AND NEW.status = 'running' THEN NEW.lease_until
             WHEN TG_OP <> 'INSERT' THEN OLD.lease_until END,
        CASE WHEN TG_OP <> 'INSERT' THEN OLD.attempts END, CASE WHEN TG_OP <> 'DELETE' THEN NEW.attempts END,
        CASE WHEN TG_OP <> 'INSERT' THEN OLD.run_at ELSE NEW.run_at END
    );
    RETURN NULL;
END $$;

CREATE TRIGGER torture_note AFTER INSERT OR DELETE ON {schema}.jobs
FOR EACH ROW EXECUTE FUNCTION {schema}.torture_note();

-- Not where a heartbeat extends a lease.
CREATE TRIGGER torture_note_update AFTER UPDATE ON {schema}.jobs
FOR EACH ROW WHEN (
    (OLD.status, OLD.lease_seq, OLD.attempts, OLD.run_at, OLD.completed_at, OLD.last_error)
    IS DISTINCT FROM (NEW.status, NEW.lease_seq, NEW.attempts, NEW.run_at, NEW.completed_at, NEW.last_error)
) EXECUTE FUNCTION {schema}.torture_note();

CREATE FUNCTION {schema}.torture_note_failure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.torture_failures (job_id, number, error) VALUES (NEW.job_id, NEW.number, left(NEW.error, 200));
    RETURN NULL;
END $$;

CREATE TRIGGER torture_note_failure AFTER INSERT ON {schema}.job_attempts
FOR EACH ROW EXECUTE FUNCTION {schema}.torture_note_failure();

CREATE FUNCTION {schema}.torture_note_tick() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.torture_tick_ends (runner, slot, worker) VALUES (NEW.name, NEW.next_run_at, NEW.last_worker);
    RETURN NULL;
END $$;

CREATE TRIGGER torture_note_tick AFTER UPDATE ON {schema}.job_runners
FOR EACH ROW WHEN (OLD.last_outcome = 'running' AND NEW.last_outcome IN ('completed', 'failed'))
EXECUTE FUNCTION {schema}.torture_note_tick();

CREATE VIEW {schema}.torture_leases AS
SELECT claim.job_id, claim.type, claim.new_lease AS lease_seq, claim.leased_by,
    substring(claim.leased_by FROM ':([0-9]+):[^:]*$')::integer AS pid,
    claim.due, claim.at AS claimed_at, claim.new_attempts AS attempt, claim.max_attempts,
    ended.at AS ended_at, ended.number IS NOT NULL AS is_over, ended.new_status,
    ended.lease_until < ended.at AS expired, ended.old_attempts - ended.new_attempts AS refunded, failure.error
FROM {schema}.torture_transitions AS claim
LEFT JOIN {schema}.torture_transitions AS ended
    ON ended.job_id = claim.job_id AND ended.old_lease = claim.new_lease AND ended.old_status = 'running'
LEFT JOIN {schema}.torture_failures AS failure ON failure.job_id = ended.job_id AND failure.xact = ended.xact
WHERE claim.new_status = 'running' AND claim.new_lease IS DISTINCT FROM claim.old_lease;
"""


def make(connection: psycopg.Connection[Any], schema: str) -> None:
    """Make them in the schema, in which the product's tables are."""
    for statement in _MAKE.split(";\n\n"):
        connection.execute(sql.SQL(statement).format(schema=sql.Identifier(schema)))
