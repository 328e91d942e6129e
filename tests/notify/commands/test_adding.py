from __future__ import annotations

import datetime as dt
import io
from pathlib import Path

import pytest
from django.core.management import CommandError

from notify import signing
from notify.models import AuditEntry, WebhookEndpoint
from tests.notify.commands.calling import webhook
from tests.notify.factories import SECRET, TOPIC, EndpointFactory

pytestmark = pytest.mark.django_db
URL = "https://hooks.example/T000/SECRET-TOKEN"


def test_an_endpoint_is_added_and_its_secret_printed_once():
    told = webhook("add", "chat", URL, "--topics", f"{TOPIC}, {TOPIC}")

    endpoint = WebhookEndpoint.objects.get()
    assert (endpoint.name, endpoint.url, endpoint.topics) == ("chat", URL, [TOPIC])
    assert endpoint.signing_secret() in told
    assert signing.standard_form(endpoint.signing_secret()) in told
    assert "SECRET-TOKEN" not in told
    assert AuditEntry.objects.get().actor.startswith("command line (")


def test_a_secret_is_taken_from_standard_input_and_not_printed(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{SECRET}\n"))

    told = webhook("add", "chat", URL, "--secret-stdin")

    assert WebhookEndpoint.objects.get().signing_secret() == SECRET
    assert SECRET not in told
    assert "no topics yet" in told


def test_the_url_is_taken_from_standard_input_as_it_may_be_a_credential(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{URL}\n"))
    assert "SECRET-TOKEN" not in webhook("add", "chat", "-")

    monkeypatch.setattr("sys.stdin", io.StringIO(f"{URL}\n{SECRET}\n"))
    webhook("add", "other", "-", "--secret-stdin")

    assert {endpoint.url for endpoint in WebhookEndpoint.objects.all()} == {URL}
    assert WebhookEndpoint.objects.get(name="other").signing_secret() == SECRET


def test_a_standard_input_without_a_url_is_a_wrong_call(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))

    with pytest.raises(CommandError, match="must begin with https://") as refused:
        webhook("add", "chat", "-")

    assert refused.value.returncode == 2


def test_an_endpoint_is_added_with_all_that_it_may_have(tmp_path: Path):
    headers = tmp_path / "headers"
    headers.write_text("Authorization: Bearer abc\n")

    webhook(
        *("add", "chat", URL, "--topics", "worktree.*", "--timeout", "20s"),
        *("--in-flight", "1", "--headers-file", str(headers), "--allow-checkup"),
    )

    endpoint = WebhookEndpoint.objects.get()
    assert endpoint.topics == ["worktree.*"]
    assert endpoint.timeout == dt.timedelta(seconds=20)
    assert endpoint.own_headers() == {"Authorization": "Bearer abc"}
    assert (endpoint.max_in_flight, endpoint.checkup_allowed) == (1, True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\xff", "is not UTF-8 text"),
        (b"Host: x", "'Host' is reserved"),
        (b"nonsense", "line 1 is not of the form"),
    ],
    ids=["no file", "no text", "a reserved name", "no header"],
)
def test_a_file_of_headers_that_cannot_be_used_is_a_wrong_call(
    tmp_path: Path, content: bytes | None, message: str
):
    file = tmp_path / "headers"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(CommandError, match=message) as refused:
        webhook("add", "chat", URL, "--headers-file", str(file))

    assert refused.value.returncode == 2
    assert not WebhookEndpoint.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chat", "ftp://host"], "must begin with https:// or http://"),
        (["chat", URL, "--topics", "test.hapened"], "did you mean 'test.happened'"),
        (["chat", URL, "--topics", "webhook.test"], "never sent as one"),
        (["taken", URL], "name: .*already exists"),
        (["chat", URL, "--topics", "worktre.*"], r"did you mean 'worktree\.\*'"),
        (["chat", URL, "--timeout", "5m"], "timeout: it must be from 1s to 60s"),
        (["chat", URL, "--in-flight", "0"], "max_in_flight: .*greater than"),
    ],
    ids=lambda value: str(value),
)
def test_what_breaks_a_rule_is_a_wrong_call(arguments: list[str], message: str):
    EndpointFactory(name="taken")

    with pytest.raises(CommandError, match=message) as refused:
        webhook("add", *arguments)

    assert refused.value.returncode == 2
    assert WebhookEndpoint.objects.count() == 1


def test_a_timeout_needs_its_unit():
    with pytest.raises(CommandError, match="--timeout: '15': it has no unit"):
        webhook("add", "chat", URL, "--timeout", "15")
