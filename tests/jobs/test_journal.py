from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from jobs import journal
from jobs.journal import Journal, left_behind, open_journal, remains
from jobs.testing import wait_until
from tests.jobs.support import leased_job

WORKER = "test-host:1:abc"


@pytest.fixture(autouse=True)
def data_dir(settings: Settings, tmp_path: Path) -> Path:
    settings.ACW_DATA_DIR = tmp_path
    settings.ACW_HOST = "test-host"
    return tmp_path


@pytest.fixture
def opened() -> Iterator[Journal]:
    made = open_journal(WORKER)
    assert made is not None
    yield made
    made.close()


def die(made: Journal) -> Path:
    """What is left when the process of the journal is gone."""
    (path,) = left_behind()
    data = path.read_bytes()
    made.close()
    path.write_bytes(data)
    path.with_suffix(journal.CRASH_SUFFIX).touch()
    return path


def test_it_tells_what_was_begun_and_what_completed(opened: Journal):
    slot = opened.slot()
    assert slot is not None
    first, second = leased_job(lease_seq=7), leased_job(lease_seq=2**62)
    slot.begin(first)
    slot.done()
    slot.begin(second)
    with remains(die(opened)) as found:
        assert found is not None
        assert found.worker == WORKER
        assert found.notes.complete
        assert found.notes.done == {first.key}
        assert found.notes.begun == {first.key, second.key}
        assert not found.again


def test_each_thread_has_a_part_of_its_own(opened: Journal):
    jobs = [leased_job(), leased_job()]
    for job in jobs:
        slot = opened.slot()
        assert slot is not None
        slot.begin(job)
    with remains(die(opened)) as found:
        assert found is not None
        assert found.notes.begun == {job.key for job in jobs}


def test_what_was_written_to_the_table_is_forgotten(opened: Journal):
    slot = opened.slot()
    assert slot is not None
    slot.begin(leased_job())
    slot.reset()
    current = leased_job()
    slot.begin(current)
    with remains(die(opened)) as found:
        assert found is not None
        assert found.notes.begun == {current.key}


def test_a_part_that_was_given_back_is_given_out_again(opened: Journal):
    slots = [opened.slot() for _ in range(journal.SLOTS)]
    last = slots[-1]
    assert last is not None
    last.begin(leased_job())
    opened.give_back(last)
    again = opened.slot()
    assert again is not None
    assert again.number == last.number
    with remains(die(opened)) as found:
        assert found is not None
        assert found.notes.begun == set()
        assert found.notes.complete


def test_one_thread_too_many_makes_it_incomplete(opened: Journal):
    for _ in range(journal.SLOTS):
        assert opened.slot() is not None
    assert opened.slot() is None
    with remains(die(opened)) as found:
        assert found is not None
        assert not found.notes.complete


def test_one_job_too_many_makes_it_incomplete_and_spoils_nothing(opened: Journal):
    slot = opened.slot()
    assert slot is not None
    jobs = [leased_job() for _ in range(journal.ENTRIES + 1)]
    for job in jobs:
        slot.begin(job)
    slot.done()
    with remains(die(opened)) as found:
        assert found is not None
        assert not found.notes.complete
        assert found.notes.begun == {job.key for job in jobs[:-1]}
        assert found.notes.done == set()


def test_a_file_of_another_size_tells_nothing(opened: Journal):
    path = die(opened)
    path.write_bytes(path.read_bytes()[:100])
    with remains(path) as found:
        assert found is not None
        assert not found.notes.complete
        assert found.notes.begun == set()


def test_the_journal_of_this_process_is_left_alone(opened: Journal):
    (path,) = left_behind()
    with remains(path) as found:
        assert found is None
    assert path.exists()


def in_another_process(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "acw.settings"},
    ).stdout.strip()


def test_the_journal_of_a_living_process_is_left_alone(opened: Journal):
    (path,) = left_behind()
    look = (
        "import django; django.setup()\n"
        "from pathlib import Path; from jobs.journal import remains\n"
        f"with remains(Path({str(path)!r})) as found: print(found)"
    )
    assert in_another_process(look) == "None"
    assert path.exists()


def test_a_child_that_outlives_its_worker_does_not_pass_for_it(data_dir: Path):
    """The worker forks a child that waits on a pipe, and ends without closing its journal."""
    die_before_the_child = f"""
import os, sys
import django; django.setup()
from django.conf import settings
from pathlib import Path
settings.ACW_DATA_DIR = Path({str(data_dir)!r})
from jobs.journal import open_journal
made = open_journal({WORKER!r})
slot = made.slot()
if os.fork() == 0:
    os.read(0, 1)
os._exit(0)
"""
    worker = subprocess.Popen(
        [sys.executable, "-c", die_before_the_child],
        stdin=subprocess.PIPE,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "acw.settings"},
    )
    with worker:
        # Not communicate(): the child lives on until its standard input is closed.
        assert worker.wait() == 0
        (path,) = left_behind()

        def told() -> str | None:
            with remains(path) as found:
                return found.worker if found else None

        # The child may still be about to let go.
        assert wait_until(told, "the journal can be read") == WORKER


def test_it_is_read_again_for_a_claim_that_was_under_way_and_then_removed(
    opened: Journal, monkeypatch: pytest.MonkeyPatch
):
    path = die(opened)
    with remains(path) as first:
        assert first is not None
    with remains(path) as second:
        assert second is not None
        assert second.again
    assert left_behind() == [path]
    monkeypatch.setattr(journal, "SETTLE", -1.0)
    with remains(path) as third:
        assert third is not None
    assert left_behind() == []


def test_after_a_crash_of_the_host_it_is_not_believed_where_it_is_silent(
    opened: Journal, monkeypatch: pytest.MonkeyPatch
):
    slot = opened.slot()
    assert slot is not None
    job = leased_job()
    slot.begin(job)
    path = die(opened)
    monkeypatch.setattr(journal, "_this_boot", lambda: b"another".ljust(36, b"\0"))
    with remains(path) as found:
        assert found is not None
        assert found.notes.begun == {job.key}
        assert not found.notes.complete


def test_garbage_tells_nothing_and_hurts_nobody(opened: Journal):
    path = die(opened)
    path.write_bytes(b"\xff" * len(path.read_bytes()))
    with remains(path) as found:
        assert found is not None
        assert not found.notes.complete
        assert found.notes.begun == set()


@pytest.mark.parametrize("failing", ["mmap", "write"])
def test_one_that_could_not_be_opened_leaves_nothing_that_passes_for_a_dead_workers(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, failing: str
):
    def refuse(*args: object) -> None:
        raise OSError(28, "No space left on device")

    if failing == "mmap":
        monkeypatch.setattr("jobs.journal.mmap.mmap", refuse)
    else:
        monkeypatch.setattr(journal, "bytes", refuse, raising=False)
    assert open_journal(WORKER) is None
    assert list((data_dir / "workers").iterdir()) == []


def test_its_blocks_are_there_before_they_are_written(opened: Journal):
    """A hole in a mapped file would end the process when the disk is full."""
    (path,) = left_behind()
    assert path.stat().st_blocks * 512 >= path.stat().st_size


def test_what_lies_after_a_failure_to_write_it_down_is_found_again(opened: Journal):
    path = die(opened)
    with pytest.raises(RuntimeError), remains(path):
        raise RuntimeError
    assert left_behind() == [path]


def test_other_hosts_are_not_looked_at(settings: Settings, opened: Journal):
    settings.ACW_HOST = "test"
    assert left_behind() == []
    settings.ACW_HOST = "test-host"
    elsewhere = open_journal("elsewhere:1:abc")
    assert elsewhere is not None
    (mine,) = left_behind()
    assert mine.name.startswith("test-host:")
    elsewhere.close()


def test_without_a_place_to_write_it_a_worker_does_without(
    data_dir: Path, caplog: pytest.LogCaptureFixture
):
    (data_dir / "workers").touch()
    assert open_journal(WORKER) is None
    assert [record.message for record in caplog.records] == ["jobs.journal.failed"]


def test_closed_it_is_gone(opened: Journal, data_dir: Path):
    opened.close()
    assert list((data_dir / "workers").iterdir()) == []
