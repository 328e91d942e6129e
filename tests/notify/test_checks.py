from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from notify.checks import check_webhook_settings
from tests.notify.certificates import Authority
from tests.notify.factories import SECRET, TOPIC


@pytest.fixture
def sound(settings: Settings) -> Settings:
    settings.NOTIFY_WEBHOOK_ENABLED = True
    settings.NOTIFY_WEBHOOK_URL = "https://hooks.example/T000/SECRET-TOKEN"
    settings.NOTIFY_WEBHOOK_SECRET = SECRET
    settings.NOTIFY_WEBHOOK_TOPICS = [TOPIC]
    settings.NOTIFY_WEBHOOK_TIMEOUT = dt.timedelta(seconds=10)
    settings.JOBS_JOB_REAPER_LEASE_TIMEOUT = dt.timedelta(minutes=5)
    return settings


def test_sound_settings_are_passed(sound: Settings):
    assert check_webhook_settings() == []


def test_patterns_and_a_bundle_of_ones_own_are_passed(sound: Settings, tmp_path: Path):
    sound.NOTIFY_WEBHOOK_TOPICS = ["worktree.*", "*"]
    sound.NOTIFY_WEBHOOK_CA_BUNDLE = str(Authority(tmp_path).bundle)

    assert check_webhook_settings() == []


def test_nothing_configured_is_passed(sound: Settings):
    sound.NOTIFY_WEBHOOK_URL = ""
    sound.NOTIFY_WEBHOOK_SECRET = ""
    sound.NOTIFY_WEBHOOK_TOPICS = []

    assert check_webhook_settings() == []


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("NOTIFY_WEBHOOK_URL", "https://me:pw@SECRET-TOKEN/", "notify.E001"),
        ("NOTIFY_WEBHOOK_SECRET", "SECRET-TOKEN", "notify.E002"),
        ("NOTIFY_WEBHOOK_SECRET", None, "notify.E002"),
        ("NOTIFY_WEBHOOK_TOPICS", ["test.hapened"], "notify.E003"),
        ("NOTIFY_WEBHOOK_TOPICS", [TOPIC, "webhook.dead_letter"], "notify.E004"),
        ("NOTIFY_WEBHOOK_TOPICS", ["worktre.*"], "notify.E003"),
        ("NOTIFY_WEBHOOK_TOPICS", ["webhook.*"], "notify.E004"),
        ("NOTIFY_WEBHOOK_TOPICS", [], "notify.W001"),
        ("NOTIFY_WEBHOOK_CA_BUNDLE", "/nowhere/authorities.pem", "notify.E005"),
        ("NOTIFY_WEBHOOK_TIMEOUT", dt.timedelta(seconds=151), "notify.W002"),
    ],
    ids=lambda value: str(value),
)
def test_each_mistake_has_its_message_a_hint_and_no_secret(
    sound: Settings, name: str, value: Any, expected: str
):
    setattr(sound, name, value)

    [message] = check_webhook_settings()

    assert message.id == expected
    assert name in message.msg
    assert message.hint
    assert "SECRET-TOKEN" not in f"{message.msg} {message.hint}"
