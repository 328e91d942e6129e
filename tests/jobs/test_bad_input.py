"""What callers and handlers may come up with: refused by name, or stored in a form that can be, in bounded time and memory."""

from __future__ import annotations

import datetime as dt
import decimal
import re
import sys
import time
import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn
from unittest import mock

import pytest
from django.utils.functional import SimpleLazyObject
from pytest_django import Settings

from jobs import outcomes
from jobs.context import JobContext
from jobs.enqueue import NewJob, enqueue, enqueue_many
from jobs.exceptions import (
    InvalidJob,
    InvalidPayload,
    Snooze,
    UnknownJobType,
)
from jobs.models import Attempt, Job, Status
from jobs.pool import Pool
from jobs.redaction import storable
from jobs.registry import job_handler
from jobs.selection import Queues
from jobs.testing import PATIENCE, wait_until
from tests.jobs.factories import ago

HUGE = 300_000_000
LARGE = 20_000_000
SLACK = 100
"""Characters of the line that says how much was left out."""


@contextmanager
def at_most(megabytes: float) -> Iterator[None]:
    """What is allocated within, at its highest."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < megabytes * 1_000_000, f"{peak / 1_000_000:,.1f} MB"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def doubled(depth: int) -> Any:
    """A small object that would be written as 2 ** depth values."""
    value: Any = 1
    for _ in range(depth):
        value = [value, value]
    return value


def in_itself() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["a"] = value
    return value


class Hostile(RuntimeError):
    """Raised by objects that must not be asked."""


def refuse(*_: object) -> NoReturn:
    raise Hostile


class SlyText(str):
    __slots__ = ()
    __len__ = __str__ = __repr__ = __iter__ = __contains__ = __format__ = refuse
    isascii = __hash__ = refuse
    encode = refuse  # type: ignore[assignment]


class SlyDict(dict[str, Any]):
    __len__ = __iter__ = items = keys = values = __repr__ = refuse


class SlyList(list[Any]):
    __len__ = __iter__ = __repr__ = __length_hint__ = refuse


class SlyInteger(int):
    __le__ = __ge__ = __lt__ = __gt__ = __eq__ = __ne__ = __repr__ = __hash__ = refuse


class SlyNumber(float):
    __repr__ = __str__ = __format__ = __eq__ = __hash__ = refuse


class BrokenZone(dt.tzinfo):
    utcoffset = tzname = dst = refuse


class Wordless:
    __str__ = __repr__ = __iter__ = __len__ = refuse


@dataclass
class Note:
    text: Any
    more: list[Any] = field(default_factory=list)


@dataclass
class Picky:
    text: str

    def __post_init__(self) -> None:
        raise Hostile(self.text)


BAD_PAYLOADS: dict[str, tuple[Callable[[], Any], str]] = {
    "a NUL": (lambda: {"a": ["x", "y\x00"]}, r"payload.a\[1\]: NUL character at position 1"),
    "a NUL in a key": (lambda: {"a\x00": 1}, r"payload: key 'a\\x00': NUL"),
    "not a number": (lambda: {"a": float("nan")}, "payload.a: nan is not a JSON number"),
    "infinity": (lambda: {"a": float("-inf")}, "payload.a: -inf is not"),
    "a lone surrogate": (lambda: {"a": "x\ud800"}, "payload.a: lone surrogate at position 1"),
    "a lone surrogate in a key": (lambda: {"\udfff": 1}, r"payload: key '\\udfff': lone"),
    "300 MB of text": (lambda: {"a": {"b": "x" * HUGE}}, "payload.a.b: with it the payload has more than 20,000"),
    "20 MB of other text": (lambda: {"a": "é" * LARGE}, "payload.a: with it"),
    "a key of 20 MB": (lambda: {"k" * LARGE: 1}, "payload: key 'k{60}'…: with it"),
    "a bad value under a long key": (lambda: {"k" * 10_000: b""}, r"payload\['k{60}'…\]: bytes"),
    "a long list": (lambda: {"a": [None] * 1_000_000}, "payload.a: with it"),
    "9,000 levels": (lambda: {"a": nested(9_000)}, "nested deeper than 100 levels"),
    "itself": (in_itself, "nested deeper than 100 levels"),
    "2 ** 90 values": (lambda: {"a": doubled(90)}, "with it the payload has more than"),
    "5,000 digits": (lambda: {"a": 10**4_999}, "payload.a: integer outside 64 bits"),
    "an integer as a key": (lambda: {10**4_999: 1}, "key an integer of 16,607 bits must be a string"),
    "a decimal": (lambda: {"a": decimal.Decimal("1e140000")}, "payload.a: Decimal is not a JSON value"),
    "bytes": (lambda: {"a": b"x" * LARGE}, "payload.a: bytes is not a JSON value"),
    "a set": (lambda: {"a": {1}}, "payload.a: set is not"),
    "a date": (lambda: {"a": dt.date(2026, 1, 1)}, "payload.a: date is not"),
    "a generator": (lambda: {"a": (n for n in [1])}, "payload.a: generator is not"),
    "an object": (lambda: {"a": Wordless()}, "payload.a: Wordless is not"),
    "an object as a key": (lambda: {(1, "x" * LARGE): 1}, "key an object of type tuple must be a string"),
    "sly text": (lambda: {"a": SlyText("\x00")}, "payload.a: NUL"),
    "a sly dict": (lambda: {"a": SlyDict(b=float("nan"))}, "payload.a.b: nan is not"),
    "a sly list": (lambda: {"a": SlyList([b""])}, r"payload.a\[0\]: bytes"),
    "a sly integer": (lambda: {"a": SlyInteger(2**63)}, "payload.a: integer outside 64 bits"),
    "a sly number": (lambda: {"a": SlyNumber("inf")}, "payload.a: inf is not"),
    "a lazy object": (lambda: {"a": SimpleLazyObject(lambda: {"b": 1})}, "payload.a: SimpleLazyObject is not"),
    "a lazy payload": (lambda: SimpleLazyObject(lambda: {"b": 1}), "payload: must be an object"),
    "a mock of a dict": (lambda: {"a": mock.Mock(spec=dict)}, "payload.a: Mock is not"),
    "a list": (lambda: [1], "payload: must be an object"),
    "text": (lambda: "x" * LARGE, "payload: must be an object"),
}  # fmt: skip
BAD_NOTES: dict[str, tuple[Callable[[], Any], str]] = {
    "an object": (lambda: Note(1, [Wordless()]), "payload.more: TypeError: Encoding objects of type Wordless"),
    "itself": (lambda: _with_itself(Note(1)), r"nested deeper than 100 levels"),
    "2 ** 90 values": (lambda: Note(doubled(90)), "payload.text.*with it the payload has more than"),
    "300 MB of text": (lambda: Note("x" * HUGE), "payload.text: with it"),
    "20 MB of bytes": (lambda: Note(b"x" * LARGE), "payload.text: with it"),
    "not a number": (lambda: Note(float("nan")), "payload.text: nan"),
    "5,000 digits": (lambda: Note(10**4_999), "payload.text: "),
    "a lone surrogate": (lambda: Note(1, ["\ud800"]), r"payload.more"),
    "a field too many": (lambda: {"text": 1, "x" * 1_000: 1}, r"payload\['x{60}'…\]: Note has no such field"),
}  # fmt: skip


def _with_itself(note: Note) -> Note:
    note.more.append(note)
    return note


@pytest.fixture(autouse=True)
def types(noop: str, settings: Settings) -> None:
    settings.JOBS_MAX_PAYLOAD = 20_000

    def take_note(context: JobContext, payload: Note) -> None: ...

    def take_picky(context: JobContext, payload: Picky) -> None: ...

    job_handler("test.note")(take_note)
    job_handler("test.picky")(take_picky)


@pytest.mark.django_db
class TestEnqueue:
    @pytest.mark.parametrize("name", BAD_PAYLOADS)
    def test_a_bad_payload_is_refused_by_field(self, name: str) -> None:
        make, message = BAD_PAYLOADS[name]
        self.check("test.noop", make(), message)

    @pytest.mark.parametrize("name", BAD_NOTES)
    def test_a_bad_dataclass_is_refused_by_field(self, name: str) -> None:
        make, message = BAD_NOTES[name]
        self.check("test.note", make(), message)

    def test_a_dataclass_that_refuses_itself_is_no_error_of_the_queue(self) -> None:
        self.check("test.picky", {"text": "x"}, "payload: Picky refuses it: Hostile: x")

    def check(self, job_type: str, payload: Any, message: str) -> None:
        good, bad = NewJob(type="test.noop"), NewJob(type=job_type, payload=payload)
        with at_most(2), pytest.raises(InvalidPayload, match=message) as refused:
            enqueue(job_type, payload)
        assert len(str(refused.value)) < 2_000
        with (
            at_most(2),
            pytest.raises(InvalidPayload, match=rf"^jobs\[1\]: .*{message}"),
        ):
            enqueue_many([good, bad, good])
        # Nothing half written, and the transaction is as good as before.
        assert Job.objects.count() == 0

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: {"ref_id": "r" * HUGE}, "ref_id: 300,000,000 characters, at most 200"),
            (lambda: {"ref_id": "é" * LARGE}, "ref_id: 20,000,000 characters"),
            (lambda: {"ref_id": "\ud800"}, "ref_id: must not hold a lone surrogate"),
            (lambda: {"ref_id": SlyText("\x00")}, "ref_id: must not hold a NUL"),
            (lambda: {"ref_id": Wordless()}, "ref_id: no text can be made of it: Hostile"),
            (lambda: {"ref_id": 10**4_999}, "ref_id: no text can be made of it: ValueError"),
            (lambda: {"unique_key": "é" * LARGE}, "unique_key: 20,000,000 characters"),
            (lambda: {"unique_key": SlyText("k" * 201)}, "unique_key: 201 characters"),
            (lambda: {"unique_key": b"k"}, "unique_key: must be text, got bytes"),
            (lambda: {"unique_key": SimpleLazyObject(lambda: "k")}, "unique_key: must be text"),
            (lambda: {"queue": "q" * LARGE}, "queue: 20,000,000 characters"),
            (lambda: {"queue": ""}, "queue: must not be empty"),
            (lambda: {"queue": 5}, "queue: must be text, got int"),
            (lambda: {"queue": "a\x00"}, "queue: must not hold a NUL"),
            (lambda: {"run_at": dt.datetime(2026, 1, 1)}, "run_at: must have a time zone, got 2026-01-01"),  # noqa: DTZ001
            (lambda: {"run_at": dt.date(2026, 1, 1)}, "run_at: must be a datetime, got an object of type date"),
            (lambda: {"run_at": "x" * LARGE}, "run_at: must be a datetime, got 'x{60}'…"),
            (lambda: {"run_at": dt.datetime.max.replace(tzinfo=dt.UTC)}, "run_at: must be from the year 2 to 9998, got 9999-12-31"),
            (lambda: {"run_at": dt.datetime.min.replace(tzinfo=dt.UTC)}, "run_at: must be from the year 2 to 9998, got 0001-01-01"),
            (lambda: {"run_at": dt.datetime(2026, 1, 1, tzinfo=BrokenZone())}, "run_at: its time zone fails: Hostile"),
            (lambda: {"priority": 9}, "priority: must be one of .*, got 9"),
            (lambda: {"priority": 10**4_999}, "priority: must be one of .*, got an integer"),
            (lambda: {"priority": []}, "priority: must be one of .*, got an object of type list"),
            (lambda: {"priority": SlyInteger(9)}, "priority: must be one of .*, got an object of type SlyInteger"),
            (lambda: {"max_attempts": 0}, "max_attempts: must be from 1 to 1,000,000, got 0"),
            (lambda: {"max_attempts": 2.5}, "max_attempts: must be from 1 to 1,000,000, got 2.5"),
            (lambda: {"max_attempts": True}, "max_attempts: must be from 1 to 1,000,000, got True"),
            (lambda: {"max_attempts": "5"}, "max_attempts: must be from 1 to 1,000,000, got '5'"),
            (lambda: {"max_attempts": 10**4_999}, "max_attempts: .* got an integer of 16,607 bits"),
            (lambda: {"max_attempts": decimal.Decimal("nan")}, "max_attempts: .* got an object of type Decimal"),
        ],
    )  # fmt: skip
    def test_a_bad_argument_is_refused_by_name(
        self, make: Callable[[], dict[str, Any]], message: str
    ) -> None:
        arguments = make()
        with at_most(2), pytest.raises(InvalidJob, match=message) as refused:
            enqueue("test.noop", **arguments)
        assert len(str(refused.value)) < 2_000
        good, bad = NewJob(type="test.noop"), NewJob(type="test.noop", **arguments)
        with at_most(2), pytest.raises(InvalidJob, match=rf"^jobs\[1\]: .*{message}"):
            enqueue_many([good, bad, good])
        assert Job.objects.count() == 0

    @pytest.mark.parametrize(
        ("name", "error"),
        [("x" * 100_000, "type: 100,000 characters"), ("", "type: must not be empty"), (None, "type: must not be empty"), ([], "type: must be text, got list"), ("test.nop", "did you mean 'test.noop'")],
        ids=["long", "empty", "none", "list", "unknown"],
    )  # fmt: skip
    def test_a_bad_type_is_refused_by_name(self, name: Any, error: str) -> None:
        with pytest.raises((InvalidJob, UnknownJobType), match=error):
            enqueue(name)
        new = [NewJob(type="test.noop"), NewJob(type=name)]
        with pytest.raises(
            (InvalidJob, UnknownJobType), match=rf"^jobs\[1\]: .*{error}"
        ):
            enqueue_many(new)
        assert Job.objects.count() == 0

    def test_more_than_one_statement_takes_is_refused_before_it_is_made(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("jobs.enqueue._LARGEST_CALL", 100_000)
        new = [NewJob(type="test.noop", payload={"a": "x" * 1_000})] * 100
        with pytest.raises(InvalidJob, match="jobs: their payloads have 100,800"):
            enqueue_many(new)
        assert len(enqueue_many(new[:99])) == 99

    def test_what_lies_about_itself_and_is_sound_is_stored_as_what_it_is(self) -> None:
        payload = {
            "text": SlyText("x"),
            "dict": SlyDict(a=1),
            "list": SlyList([1]),
            "integer": SlyInteger(3),
            "number": SlyNumber(0.5),
        }

        class Moment(dt.datetime):
            __str__ = __repr__ = refuse

        at = ago(hours=1)
        job = enqueue(
            "test.noop",
            payload,
            ref_id=SlyText("r"),
            unique_key=SlyText("k"),
            queue=SlyText("q"),
            run_at=Moment.fromisoformat(at.isoformat()),
        )
        stored = Job.objects.get(pk=job.pk)
        assert stored.payload == {
            "text": "x",
            "dict": {"a": 1},
            "list": [1],
            "integer": 3,
            "number": 0.5,
        }
        assert (stored.ref_id, stored.unique_key, stored.queue) == ("r", "k", "q")
        assert stored.run_at == at

    def test_a_time_is_stored_whatever_its_zone_is(self) -> None:
        odd = dt.timezone(dt.timedelta(hours=5, microseconds=1))
        at = dt.datetime(2026, 1, 2, tzinfo=odd)
        assert enqueue("test.noop", run_at=at).run_at == at


class Broken(Exception):
    __str__ = __repr__ = refuse


class Ending(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class Numb(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]


class Sly(Exception):
    def __str__(self) -> str:
        return SlyText("x" * LARGE)


class Closed(Exception):
    """All that may be asked of it raises, but what the interpreter itself takes from it."""

    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(name)


class Nameless(type):
    __name__ = property(refuse)


class Anonymous(Exception, metaclass=Nameless):
    pass


class Fatal(BaseException):
    pass


@dataclass
class Exiting:
    a: int = 1

    def __post_init__(self) -> None:
        if self.a == 2:
            raise SystemExit(6)


class Undelayed(Snooze):
    def __init__(self) -> None: ...


class Soon(Snooze):
    def __init__(self) -> None:
        self.delay = "soon"  # type: ignore[assignment]


class Before(Snooze):
    def __init__(self) -> None:
        self.delay = dt.timedelta.min


def in_a_circle() -> Exception:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def one_after_another(count: int) -> Exception:
    error = ValueError("the first")
    for number in range(count):
        later = ValueError(str(number))
        later.__context__ = error
        error = later
    return error


def with_notes(notes: Any) -> Exception:
    error = ValueError("noted")
    error.__notes__ = notes
    return error


def group(members: int, depth: int = 3) -> Exception:
    if not depth:
        return ValueError("member")
    return ExceptionGroup(
        "group", [group(members if depth == 1 else 3, depth - 1)] * members
    )


def syntax_error() -> SyntaxError:
    error = SyntaxError("odd", ("file\x00", 1, 1, "text"))
    error.lineno = error.end_lineno = "no number"  # type: ignore[assignment]
    error.offset, error.end_offset = 1, 10**9
    error.text = 5  # type: ignore[assignment]
    return error


ERRORS: dict[str, tuple[Callable[[], BaseException], str]] = {
    "a NUL": (lambda: ValueError("a\x00b"), "ValueError: a\ufffdb"),
    "a lone surrogate": (lambda: ValueError("a\ud800" * 2_000), r"ValueError: a\\ud800"),
    "300 MB of message": (lambda: ValueError("x" * HUGE), "ValueError: xxx"),
    "20 MB that cannot be decoded": (lambda: UnicodeDecodeError("utf-8", b"\xff" * LARGE, 0, 1, "bad"), "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff"),
    "no words": (Broken, r"Broken: \(its message could not be made: Hostile\)"),
    "words that end the thread": (Ending, r"Ending: \(its message could not be made: SystemExit\)"),
    "words that are none": (Numb, r"Numb: \(its message could not be made: TypeError\)"),
    "words of a class of their own": (Sly, "Sly: xxx"),
    "nothing may be asked": (lambda: Closed("x"), "Closed: x"),
    "no name": (Anonymous, "Anonymous"),
    "a long name": (lambda: type("N" * 100_000, (Exception,), {})(), "N{60}"),
    "a circle of causes": (in_a_circle, "ValueError: first"),
    "a chain of 10,000": (lambda: one_after_another(10_000), "ValueError: 9999"),
    "notes that are no list": (lambda: with_notes(5), "ValueError: noted"),
    "notes without words": (lambda: with_notes([Broken(), 5, "x" * LARGE] * 1_000), "ValueError: noted"),
    "a group of thousands": (lambda: group(3_000), "ExceptionGroup: group"),
    "a group in groups": (lambda: group(1, depth=500), "ExceptionGroup: group"),
    "no exception of Python's": (Fatal, "Fatal"),
    "an odd syntax error": (syntax_error, "SyntaxError: odd"),
    "a snooze without a delay": (Undelayed, "Undelayed"),
    "a snooze until soon": (Soon, "Soon"),
}  # fmt: skip


def raises(make: Callable[[], BaseException]) -> Callable[[JobContext, Any], None]:
    def handler(context: JobContext, payload: Any) -> None:
        raise make()

    return handler


def recurse(depth: int) -> None:
    if depth:
        recurse_too(depth - 1)
    raise ValueError("at the bottom")


def recurse_too(depth: int) -> None:
    recurse(depth)


@pytest.fixture
def deep() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(30_000)
    yield
    sys.setrecursionlimit(before)


class TestDescription:
    """Of what was raised, in bounded time and memory."""

    @pytest.mark.parametrize("name", ERRORS)
    def test_an_error_takes_no_more_than_it_may(self, name: str) -> None:
        make, message = ERRORS[name]
        error = make()
        with at_most(50 if name == "words of a class of their own" else 3):
            described = outcomes.describe(error)
            traceback = outcomes.describe_traceback(error)
        assert re.match(message, described)
        assert len(described) <= outcomes.ERROR_LIMIT + SLACK
        assert len(traceback) <= outcomes.TRACEBACK_LIMIT + SLACK

    def test_a_recursion_of_10_000_frames_keeps_its_head_and_tail(
        self, deep: None
    ) -> None:
        with pytest.raises(ValueError, match="at the bottom") as raised:
            recurse(5_000)
        with at_most(3):
            traceback = outcomes.describe_traceback(raised.value)
        assert len(traceback) <= outcomes.TRACEBACK_LIMIT + SLACK
        assert traceback.startswith("Traceback (most recent call last):\n")
        assert "test_a_recursion_of_10_000_frames" in traceback
        assert "frames left out" in traceback
        assert traceback.endswith("ValueError: at the bottom\n")

    def test_a_password_beside_a_cut_is_not_shown_in_part(self) -> None:
        url = "https://user:secret-of-mine@host/"
        text = "x" * (outcomes.ERROR_LIMIT // 2 - 23) + " " + url + "y" * 10_000
        for limit in range(outcomes.ERROR_LIMIT - 80, outcomes.ERROR_LIMIT, 2):
            assert "secret" not in storable(text, limit)
        assert "secret" not in outcomes.describe(ValueError(text))


@pytest.mark.django_db(transaction=True)
class TestHandlers:
    @pytest.fixture
    def run(self) -> Iterator[Callable[[], None]]:
        made: list[Pool] = []

        def run() -> None:
            pool = Pool(
                worker="w1",
                threads=2,
                queues=Queues(["default"]),
                lease=dt.timedelta(minutes=5),
                drain=True,
            )
            made.append(pool)
            pool.start()
            wait_until(lambda: not all(thread.is_alive() for thread in pool.threads))
            assert [thread.error for thread in pool.threads] == [None, None]
            assert pool.join(time.monotonic() + PATIENCE)

        yield run
        for pool in made:
            pool.stop()
            pool.close()

    def enqueue_among(self, *bad: str, **fields: Any) -> list[uuid.UUID]:
        """Nine good jobs, and in their midst the bad ones, whose ids are returned."""
        good = [NewJob(type="test.noop") for _ in range(9)]
        new = [NewJob(type=name, **fields) for name in bad]
        return enqueue_many([*good[:4], *new, *good[4:]])[4 : 4 + len(new)]

    def test_each_ends_as_it_should_and_holds_up_nothing(
        self, run: Callable[[], None]
    ) -> None:
        for name, (make, _) in ERRORS.items():
            job_handler(f"test.{name}")(raises(make))
        ids = self.enqueue_among(*(f"test.{name}" for name in ERRORS), max_attempts=1)
        run()
        assert Job.objects.filter(status=Status.COMPLETED).count() == 9
        for pk, (name, (_, message)) in zip(ids, ERRORS.items(), strict=True):
            job = Job.objects.get(pk=pk)
            assert (name, job.status) == (name, Status.DEAD)
            assert re.match(message, job.last_error)
            assert len(job.last_error) <= outcomes.ERROR_LIMIT + SLACK
            attempt = Attempt.objects.get(job=pk)
            assert attempt.error == job.last_error
            assert len(attempt.traceback) <= outcomes.TRACEBACK_LIMIT + SLACK
        # The worker goes on: what comes later is run as well.
        enqueue("test.noop")
        run()
        assert Job.objects.filter(status=Status.COMPLETED).count() == 10

    def test_what_a_handlers_own_classes_and_functions_raise_is_its_own_failure(
        self, run: Callable[[], None]
    ) -> None:
        class Later(Exception):
            @property
            def retry_after(self) -> dt.timedelta:
                raise SystemExit(4)

        def backoff(attempt: int) -> dt.timedelta:
            raise SystemExit(5)

        def exiting(context: JobContext, payload: Exiting) -> None: ...

        job_handler("test.later")(raises(Later))
        job_handler("test.backoff", backoff=backoff)(raises(ValueError))
        job_handler("test.soon", backoff=lambda attempt: "soon")(raises(ValueError))  # type: ignore[arg-type, return-value]
        job_handler("test.before")(raises(Before))
        job_handler("test.exiting")(exiting)
        retried = self.enqueue_among("test.later", "test.backoff", "test.soon")
        (before,) = enqueue_many([NewJob(type="test.before", max_attempts=1)])
        exits = enqueue("test.exiting", {"a": 1})
        Job.objects.filter(pk=exits.pk).update(payload={"a": 2})
        Job.objects.filter(pk=before).update(run_at=ago(hours=1))
        with mock.patch("jobs.outcomes._NOW", dt.timedelta(hours=1)):
            run()
        assert Job.objects.filter(status=Status.COMPLETED).count() == 9
        for pk in retried:
            assert Job.objects.get(pk=pk).status == Status.PENDING
        assert Job.objects.get(pk=before).status == Status.PENDING
        dead = Job.objects.get(pk=exits.pk)
        assert (dead.status, dead.last_error) == (Status.DEAD, "SystemExit: 6")
