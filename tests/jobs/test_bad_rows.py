"""Rows that nobody would enqueue, put into the table by SQL: what cannot be read is refused there, and what can be stalls nothing."""

from __future__ import annotations

import datetime as dt
import io
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from django.core.management import call_command
from django.db import Error, connection, transaction
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from jobs import actions, doctor, stats
from jobs.claims import claim
from jobs.connection import QueueConnection, TransactionConnection
from jobs.enqueue import NewJob, enqueue_many
from jobs.execution import Execution
from jobs.finisher import write
from jobs.handler_connections import HandlerConnections
from jobs.identifiers import uuid7
from jobs.leases import finish
from jobs.models import Attempt, Job, Status
from jobs.outcomes import snooze
from jobs.pool import Pool
from jobs.runners import job_purge, job_reaper
from jobs.selection import Queues
from jobs.testing import PATIENCE, wait_until
from tests.jobs.support import claim_for

LAST = 2**31 - 1
ODD = "\x1b[2J\u202e'\"\\%s{}<script>\n\t;--"
DEAD, PENDING, COMPLETED = Status.DEAD, Status.PENDING, Status.COMPLETED


def _decoded(text: str) -> str:
    """What becomes of a job with this payload: a newer Python reads more than an older one."""
    try:
        msgspec.json.decode(text)
    except RecursionError:
        return DEAD
    return COMPLETED


DEEP = '{"a": ' + "[" * 9000 + "]" * 9000 + "}"

# Each as SQL for one column; what becomes of a pending one when it is run; in no case of the nine beside it.
BAD_ROWS: dict[str, tuple[dict[str, str], str]] = {
    "9,000 levels": ({"payload": """('{"a": ' || repeat('[', 9000) || repeat(']', 9000) || '}')::jsonb"""}, _decoded(DEEP)),
    "5,000 digits": ({"payload": """('{"a": ' || repeat('9', 5000) || '}')::jsonb"""}, DEAD),
    "1e100000": ({"payload": """'{"a": 1e100000}'::jsonb"""}, DEAD),
    "1e-16000": ({"payload": """'{"a": 1e-16000}'::jsonb"""}, COMPLETED),
    "5 MB of text": ({"payload": "jsonb_build_object('a', repeat('x', 5000000))"}, COMPLETED),
    "1 MB of control characters": ({"payload": r"jsonb_build_object('a', repeat(E'\x01', 1000000))"}, COMPLETED),
    "twice the same key": ({"payload": """'{"a": 1, "a": 2}'::jsonb"""}, COMPLETED),
    "odd keys": ({"payload": r"""'{"": 1, "\u0001": 2, "__proto__": 3}'::jsonb"""}, COMPLETED),
    "attempts at the end": ({"attempts": str(LAST)}, DEAD),
    "attempts past the maximum": ({"attempts": "6"}, DEAD),
    "attempts and maximum at the end": ({"attempts": str(LAST), "max_attempts": str(LAST)}, COMPLETED),
    "a lease's number at the end": ({"lease_seq": str(2**63 - 1)}, COMPLETED),
    "a lease's number at the beginning": ({"lease_seq": str(-(2**63))}, COMPLETED),
    "no type": ({"type": "''"}, PENDING),
    "an odd type": ({"type": "%(odd)s"}, PENDING),
    "a long type": ({"type": "repeat('ü', 100)"}, PENDING),
    "no queue": ({"queue": "''"}, COMPLETED),
    "an odd queue": ({"queue": "%(odd)s"}, COMPLETED),
    "a long queue": ({"queue": "repeat('\U0001f600', 300)"}, COMPLETED),
    "an odd reference": ({"ref_id": "%(odd)s"}, COMPLETED),
    "an empty reference": ({"ref_id": "''"}, COMPLETED),
    "an odd key": ({"unique_key": "%(odd)s || %(state)s"}, COMPLETED),
    "due since ever": ({"run_at": "'0002-01-02'"}, COMPLETED),
    "due never": ({"run_at": "'9998-12-30'"}, PENDING),
    "made long ago": ({"created_at": "'0002-01-02'"}, COMPLETED),
    "made much later": ({"created_at": "'9998-12-30'"}, COMPLETED),
    "begun much later": ({"started_at": "'9998-12-30'", "updated_at": "'0002-01-02'"}, COMPLETED),
    "asked to stop in no time": ({"cancel_requested_at": "'0002-01-02'"}, ""),
    "a long error": ({"last_error": "repeat('x', 100000)"}, COMPLETED),
    "an odd error": ({"last_error": "repeat(%(odd)s, 1000)"}, COMPLETED),
}  # fmt: skip
REFUSED: dict[str, dict[str, str]] = {
    "no payload": {"payload": "NULL"},
    "a payload of null": {"payload": "'null'"},
    "a list": {"payload": "'[1]'"},
    "text": {"payload": "'\"text\"'"},
    "a number": {"payload": "'1'"},
    "a number that is none": {"payload": """'{"a": NaN}'"""},
    "a NUL": {"payload": r"""'{"a": "\u0000"}'"""},
    "a lone surrogate": {"payload": r"""'{"a": "\ud800"}'"""},
    "1e140000": {"payload": """'{"a": 1e140000}'"""},
    "300 MB of text": {"payload": "jsonb_build_object('a', repeat('x', 300000000))"},
    "70 MB of text": {"payload": "jsonb_build_object('a', repeat('x', 70000000))"},
    "a status of its own": {"status": "'done'"},
    "running without a lease": {"status": "'running'"},
    "finished without a time": {"status": "'dead'"},
    "attempts below zero": {"attempts": "-1"},
    "no attempts at all": {"max_attempts": "0"},
    "a priority of its own": {"priority": "4"},
    "a type of 300 characters": {"type": "repeat('x', 300)"},
    "an error of 20 MB": {"last_error": "repeat('x', 20000000)"},
    **{
        f"{column} {time}": {column: f"'{time}'::timestamptz"}
        for column in ("run_at", "created_at", "updated_at", "started_at", "cancel_requested_at")
        for time in ("infinity", "-infinity", "20000-01-01", "0044-03-15 BC")
    },
    "a lease for ever": {"status": "'running'", "lease_until": "'infinity'"},
    "a lease that never was": {"status": "'running'", "lease_until": "'-infinity'"},
    "finished at no time": {"status": "'dead'", "completed_at": "'-infinity'"},
}  # fmt: skip
STATES: dict[str, dict[str, str]] = {
    "pending": {},
    "held by nobody": {"status": "'running'", "lease_until": "now() - interval '1 hour'"},
    "held by a lost worker": {"status": "'running'", "lease_until": "now() - interval '1 hour'", "leased_by": "%(odd)s"},
    "completed": {"status": "'completed'", "completed_at": "now() - interval '90 days'"},
    "dead": {"status": "'dead'", "completed_at": "now() - interval '90 days'"},
    "cancelled": {"status": "'cancelled'", "completed_at": "now() - interval '90 days'"},
}  # fmt: skip


def put(state: str = "pending", **columns: str) -> uuid.UUID:
    """Insert a job, due long since, whose columns are given as SQL."""
    job_id = uuid7()
    values = {
        "id": f"'{job_id}'",
        "type": "'test.noop'",
        "run_at": "now() - interval '1 hour'",
        **STATES[state],
        **columns,
    }
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO jobs ({', '.join(values)}) VALUES ({', '.join(values.values())})",
            {"odd": ODD, "state": state},
        )
    return job_id


def put_all(state: str) -> dict[uuid.UUID, str]:
    """Every bad row that this state can have: ids and what is bad about them."""
    rows = {}
    for name, (columns, _) in BAD_ROWS.items():
        if state == "pending" and "cancel_requested_at" in columns:
            continue  # which a constraint refuses
        rows[put(state, **columns)] = name
    return rows


def statuses(ids: Any) -> dict[uuid.UUID, str]:
    return dict(Job.objects.filter(pk__in=list(ids)).values_list("pk", "status"))


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def run(noop: str) -> Iterator[Callable[[], None]]:
    """Runs what is due through a pool of threads, to the end."""
    made: list[Pool] = []

    def run() -> None:
        queues = Queues()
        queues.discover(Job.objects.values_list("queue", flat=True).distinct())
        lease = dt.timedelta(minutes=5)
        pool = Pool(worker="w1", threads=2, queues=queues, lease=lease, drain=True)
        made.append(pool)
        pool.start()
        wait_until(lambda: not all(thread.is_alive() for thread in pool.threads))
        assert [thread.error for thread in pool.threads] == [None, None]
        assert pool.join(time.monotonic() + PATIENCE)

    yield run
    for pool in made:
        pool.stop()
        pool.close()


@pytest.mark.django_db
@pytest.mark.parametrize("name", REFUSED)
def test_what_could_not_be_read_again_is_refused_by_the_table(name: str) -> None:
    with pytest.raises(Error), transaction.atomic():
        put(**REFUSED[name])
    assert not Job.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "columns",
    [
        {"started_at": "'infinity'"},
        {"finished_at": "'20000-01-01'"},
        {"error": "repeat('x', 20000000)"},
        {"traceback": "repeat('x', 500001)"},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_so_are_attempts_that_could_not(columns: dict[str, str]) -> None:
    values = {"job_id": f"'{put()}'", "number": "1", **columns}
    with (
        pytest.raises(Error, match="job_attempts_"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            f"INSERT INTO job_attempts ({', '.join(values)}) VALUES ({', '.join(values.values())})"
        )


@pytest.mark.django_db
@pytest.mark.parametrize(
    "name", [name for name, (_, becomes) in BAD_ROWS.items() if becomes]
)
def test_a_bad_row_in_a_batch_of_ten_leaves_nine_that_are_run(
    noop: str, transaction_connection: TransactionConnection, name: str
) -> None:
    columns, becomes = BAD_ROWS[name]
    good = [put() for _ in range(4)]
    bad = put(**columns)
    good += [put() for _ in range(5)]
    queues = dict.fromkeys(Job.objects.values_list("queue", flat=True), 100)
    wanted = claim_for(queues=queues)
    while batch := claim(transaction_connection, wanted):
        ended = [(job, Execution(job).run(HandlerConnections())) for job in batch]
        write(transaction_connection, ended, worker="w1")  # type: ignore[arg-type]
    assert set(statuses(good).values()) == {COMPLETED}
    assert statuses([bad]) == {bad: becomes}
    if becomes == DEAD:
        error = Job.objects.defer("payload").get(pk=bad).last_error
        assert error.startswith(("InvalidPayload: payload", "attempts used up: "))


@pytest.mark.django_db(transaction=True)
class TestWorker:
    def test_they_all_together_leave_each_other_alone(
        self, run: Callable[[], None]
    ) -> None:
        rows = put_all("pending")
        good = [put() for _ in range(9)]
        run()
        assert set(statuses(good).values()) == {COMPLETED}
        became = {name: statuses(rows)[pk] for pk, name in rows.items()}
        assert became == {name: BAD_ROWS[name][1] for name in rows.values()}

    def test_odd_types_that_nobody_knows_fail_aloud_once_their_grace_is_over(
        self, run: Callable[[], None], settings: Settings
    ) -> None:
        settings.JOBS_UNKNOWN_TYPE_GRACE = dt.timedelta(minutes=10)
        names = ["no type", "an odd type", "a long type"]
        odd = [put(**BAD_ROWS[name][0], max_attempts="1") for name in names]
        worse = put(type="'x'", **BAD_ROWS["9,000 levels"][0], max_attempts="1")
        pool = Pool(
            worker="w1",
            threads=1,
            queues=Queues(),
            lease=dt.timedelta(minutes=5),
            drain=True,
        )
        pool._unknown_types_due = 0.0
        pool.tend()
        pool.stop()
        pool.close()
        assert set(statuses([*odd, worse]).values()) == {DEAD}
        assert "Unhandled job kind: , id" in Job.objects.get(pk=odd[0]).last_error

    def test_a_lease_whose_number_begins_again_is_fenced_all_the_same(
        self, queue_connection: QueueConnection, noop: str
    ) -> None:
        put(lease_seq=str(2**63 - 2))
        seen = []
        for _ in range(3):
            (job,) = claim(queue_connection, claim_for())
            seen.append(job.lease_seq)
            for earlier in seen[:-1]:
                stale = job._replace(lease_seq=earlier)
                outcome = snooze(dt.timedelta(0))
                assert not finish(queue_connection, [(stale, outcome)], worker="w1")
            finish(queue_connection, [(job, snooze(dt.timedelta(0)))], worker="w1")
        assert seen == [2**63 - 1, 1, 2]

    def test_ten_thousand_snoozes_leave_rows_as_small_as_the_first(
        self, queue_connection: QueueConnection, noop: str
    ) -> None:
        enqueue_many([NewJob(type=noop) for _ in range(100)])
        sizes = []
        for _ in range(100):
            jobs = claim(queue_connection, claim_for())
            later = [(job, snooze(dt.timedelta(0))) for job in jobs]
            assert len(finish(queue_connection, later, worker="w1")) == 100
            largest = "SELECT max(pg_column_size(jobs.*)) FROM jobs"
            sizes.append(queue_connection.execute(largest, [])[0][0])
        assert max(sizes) == sizes[0] < 400
        assert not Attempt.objects.exists()
        assert set(Job.objects.values_list("lease_seq", "attempts")) == {(100, 0)}


@pytest.mark.django_db(transaction=True)
class TestKeeping:
    """The reaper, the purge, and what operators do to many."""

    @pytest.mark.parametrize("state", ["held by nobody", "held by a lost worker"])
    def test_a_reap_returns_or_buries_them_all(
        self, stop: threading.Event, noop: str, state: str
    ) -> None:
        rows = put_all(state)
        good = [put(state) for _ in range(9)]
        summary = job_reaper(stop)
        assert summary["failed"] == 0
        assert set(statuses(good).values()) == {PENDING}
        became = {name: statuses(rows)[pk] for pk, name in rows.items()}
        assert set(became.values()) <= {PENDING, DEAD, Status.CANCELLED}
        assert became["attempts at the end"] == DEAD
        assert became["asked to stop in no time"] == Status.CANCELLED

    @pytest.mark.parametrize("state", ["completed", "dead", "cancelled"])
    def test_a_purge_deletes_them_all(self, stop: threading.Event, state: str) -> None:
        rows = put_all(state)
        assert job_purge(stop)[state] == len(rows)
        assert not Job.objects.exists()

    @pytest.mark.parametrize("state", ["dead", "cancelled"])
    def test_a_bulk_retry_makes_them_all_pending(self, state: str) -> None:
        rows = put_all(state)
        result = actions.retry(Job.objects.all(), actor="alice")
        assert (set(result.done), result.skipped) == (set(rows), [])

    def test_of_a_hundred_with_one_taken_key_99_are_retried(
        self, run: Callable[[], None], stop: threading.Event
    ) -> None:
        live = put("held by nobody", unique_key="'k'")
        taken = put("dead", unique_key="'k'")
        others = [put("dead", unique_key=f"'other-{n}'") for n in range(99)]
        due = [put() for _ in range(100)]
        result = actions.retry(Job.objects.dead(), actor="alice")
        assert str(result) == (
            f"99 retried, 1 skipped: a live job has the key (#{live})"
        )
        assert set(result.done) == set(others)
        assert job_reaper(stop)["returned"] == 1
        run()
        assert set(statuses([*others, *due]).values()) == {COMPLETED}
        assert statuses([live, taken]) == {live: PENDING, taken: DEAD}

    @pytest.mark.parametrize("verb", ["cancel", "run_now"])
    def test_so_do_the_other_verbs(self, verb: str) -> None:
        rows = put_all("pending")
        Job.objects.filter(run_at__lt=Now()).update(
            run_at=Now() + dt.timedelta(hours=1)
        )
        result = getattr(actions, verb)(Job.objects.all(), actor="alice")
        assert (set(result.done), result.skipped) == (set(rows), [])

    @pytest.mark.parametrize("verb", ["retry", "cancel", "run_now"])
    def test_a_row_that_the_database_will_not_have_changed_is_skipped_with_its_reason(
        self, verb: str
    ) -> None:
        state = "dead" if verb == "retry" else "pending"
        later = {"run_at": "now() + interval '1 hour'"}
        ids = [put(state, **later) for _ in range(100)]
        with connection.cursor() as cursor:
            cursor.execute(
                f"""
                CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    IF new.id = '{ids[40]}' THEN RAISE EXCEPTION 'not this one'; END IF;
                    RETURN new;
                END $$;
                CREATE TRIGGER refuse BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION refuse();
                """
            )
        try:
            result = getattr(actions, verb)(Job.objects.all(), actor="alice")
        finally:
            with connection.cursor() as cursor:
                cursor.execute("DROP TRIGGER refuse ON jobs; DROP FUNCTION refuse")
        assert result.done == [pk for pk in ids if pk != ids[40]]
        (skip,) = result.skipped
        assert skip.target == ids[40]
        assert skip.reason == "the database refused it: RaiseException: not this one"


@pytest.fixture
def in_every_state(db: None, noop: str) -> dict[uuid.UUID, str]:
    return {
        pk: f"{name}, {state}"
        for state in STATES
        for pk, name in put_all(state).items()
    }


class TestLooking:
    """People see them."""

    def test_the_figures(self, in_every_state: dict[uuid.UUID, str]) -> None:
        assert sum(stats.count_by_status().values()) == len(in_every_state)
        assert stats.lag() is not None
        assert {load.queue for load in stats.load_by_queue()} >= {"", ODD, "default"}
        assert sum(group.count for group in stats.dead_groups(most=100)) == len(
            BAD_ROWS
        )
        assert json.loads(printed("jobs", "stats", "--json"))["jobs"]["dead"]
        assert "\x1b" not in printed("jobs", "stats")

    def test_the_doctor(self, in_every_state: dict[uuid.UUID, str]) -> None:
        findings = list(doctor.examine())
        failed = [f for _, f in findings if "could not be checked" in f.message]
        failed += [f for _, f in findings if "the check itself failed" in f.message]
        assert failed == []

    def test_the_lists(
        self, in_every_state: dict[uuid.UUID, str], admin_client: Client
    ) -> None:
        text = printed("jobs", "list", "--limit", "1000")
        assert all(str(pk) in text for pk in in_every_state)
        assert "\x1b" not in text
        assert len(text) < 1_000_000
        listed = json.loads(printed("jobs", "list", "--limit", "1000", "--json"))
        assert {row["id"] for row in listed} == set(map(str, in_every_state))
        page, seen = 1, 0
        while seen < len(in_every_state):
            response = admin_client.get("/admin/jobs/job/", {"p": page})
            assert response.status_code == 200
            assert len(response.content) < 500_000
            seen += len(response.context["cl"].result_list)
            page += 1

    def test_one_of_each(
        self, in_every_state: dict[uuid.UUID, str], admin_client: Client
    ) -> None:
        for pk, name in in_every_state.items():
            if not name.endswith("dead"):
                continue
            response = admin_client.get(reverse("admin:jobs_job_change", args=[pk]))
            assert (name, response.status_code) == (name, 200)
            assert len(response.content) < 300_000, name
            assert "\x1b" not in printed("jobs", "show", pk)
            assert json.loads(printed("jobs", "show", "--json", pk))["id"] == str(pk)


def printed(*arguments: object) -> str:
    stdout = io.StringIO()
    call_command(*map(str, arguments), stdout=stdout)
    return stdout.getvalue()
