from __future__ import annotations

import stat
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from acw.local_secrets import kept_secret


def never() -> str:
    raise AssertionError("a kept secret must not be made again")


def test_a_secret_is_made_once_and_kept_for_its_owner_alone(tmp_path: Path):
    path = tmp_path / "state" / "key"
    assert kept_secret(path, make=lambda: "s3cret") == "s3cret"
    assert kept_secret(path, make=never) == "s3cret"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_of_two_processes_both_get_the_secret_of_the_first(tmp_path: Path):
    path = tmp_path / "key"

    def make_while_another_is_quicker() -> str:
        kept_secret(path, make=lambda: "first")
        return "second"

    assert kept_secret(path, make=make_while_another_is_quicker) == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_named_with_the_way_out(tmp_path: Path):
    (tmp_path / "state").write_text("a file where a directory should be")
    with pytest.raises(ImproperlyConfigured, match=r"state/key.*ACW_STATE_DIR"):
        kept_secret(tmp_path / "state" / "key", make=lambda: "s3cret")
