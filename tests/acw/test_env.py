from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from acw import env, kinds

NUMBER = kinds.whole_number(minimum=1)


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(env, "VARIABLES", {})


def test_the_default_is_read_like_a_value():
    assert env.read("ACW_SAMPLE", NUMBER, default="3") == 3


def test_the_environment_comes_before_the_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ACW_SAMPLE", " 4 ")
    assert env.read("ACW_SAMPLE", NUMBER, default="3") == 4


def test_a_bad_value_is_refused_with_all_that_is_needed_to_mend_it(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("ACW_SAMPLE", "two\nlines")
    with pytest.raises(ImproperlyConfigured) as caught:
        env.read("ACW_SAMPLE", NUMBER, default="3")
    assert str(caught.value) == (
        r"ACW_SAMPLE cannot be 'two\nlines': it is no whole number;"
        " accepted: a whole number, 1 or more"
    )


def test_a_secrets_value_is_never_shown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ACW_SAMPLE", "hunter2")
    with pytest.raises(ImproperlyConfigured, match="ACW_SAMPLE") as caught:
        env.read("ACW_SAMPLE", NUMBER, secret=True)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_value_that_begins_with_a_dollar_is_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ACW_SAMPLE", "$HOME")
    assert env.read("ACW_SAMPLE", kinds.TEXT) == "$HOME"


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_required_variable_must_have_a_value(
    monkeypatch: pytest.MonkeyPatch, value: str | None
):
    if value is not None:
        monkeypatch.setenv("ACW_SAMPLE", value)
    with pytest.raises(ImproperlyConfigured, match="ACW_SAMPLE is unset, and required"):
        env.read("ACW_SAMPLE", kinds.TEXT, required=True)


def test_what_is_read_is_listed():
    env.read("ACW_SAMPLE", NUMBER, default="3", secret=True)
    listed = env.VARIABLES["ACW_SAMPLE"]
    assert listed == env.Variable(
        name="ACW_SAMPLE", kind=NUMBER, default="3", secret=True
    )


def test_an_unknown_variable_is_found_with_the_name_that_was_meant(
    monkeypatch: pytest.MonkeyPatch,
):
    env.read("JOBS_WORKERS", NUMBER, default="2")
    monkeypatch.setenv("JOBS_WORKER", "4")
    monkeypatch.setenv("NOTIFY_WEBHOOK_ZZZ", "1")
    monkeypatch.setenv("ACW_TEST_DATABASE_URL", "the tests' own")
    found = env.unknown_variables()
    assert found["JOBS_WORKER"] == "JOBS_WORKERS"
    assert found["NOTIFY_WEBHOOK_ZZZ"] is None
    assert "JOBS_WORKERS" not in found
    assert "ACW_TEST_DATABASE_URL" not in found


def write_file(directory: Path, content: str) -> None:
    (directory / ".env").write_text(content, encoding="utf-8")


@pytest.fixture
def no_file_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACW_ENV_FILE", raising=False)


@pytest.mark.usefixtures("no_file_named")
def test_the_file_fills_in_what_the_environment_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("ACW_SAMPLE", "set")
    monkeypatch.setenv("ACW_OTHER", "remembered, so that it is removed again")
    monkeypatch.delenv("ACW_OTHER")
    write_file(tmp_path, "# a comment\n\nACW_SAMPLE=file\nexport ACW_OTHER='a=b'\n")
    env.load_file(tmp_path)
    assert env.read("ACW_SAMPLE", kinds.TEXT) == "set"
    assert env.read("ACW_OTHER", kinds.TEXT) == "a=b"


@pytest.mark.usefixtures("no_file_named")
def test_no_file_is_fine(tmp_path: Path):
    env.load_file(tmp_path)
    assert list(env.VARIABLES) == ["ACW_ENV_FILE"]


@pytest.mark.usefixtures("no_file_named")
def test_a_line_that_cannot_be_read_is_named_and_not_shown(tmp_path: Path):
    write_file(tmp_path, "ACW_SAMPLE=1\nSECRET_KEY = hunter2\n")
    with pytest.raises(ImproperlyConfigured, match="line 2") as caught:
        env.load_file(tmp_path)
    assert "hunter2" not in str(caught.value)


def test_a_file_that_was_named_must_be_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("ACW_ENV_FILE", "production.env")
    with pytest.raises(ImproperlyConfigured, match=r"production\.env cannot be read"):
        env.load_file(tmp_path)


def test_an_empty_name_means_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("ACW_ENV_FILE", "")
    write_file(tmp_path, "not a line that could be read")
    env.load_file(tmp_path)
