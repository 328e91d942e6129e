from __future__ import annotations

import shutil
import subprocess
import uuid
from pathlib import Path

import pytest

from notify import curl, signing
from tests.missing import cannot_run
from tests.notify import sinks
from tests.notify.factories import SECRET, TOPIC
from tests.notify.sinks import Received, Sink
from tests.notify.verifying import by_standard_webhooks, by_the_contract

EVENT_ID = uuid.UUID("7b0c3f0e-5b1e-4a57-9a53-0d6a4c9e2f11")
JSON_BODY = '{"title":"it\'s é😀\u2028 \\u0000 \\"100%\\" \\\\ $HOME `id`"}'
HOSTILE = [
    "",
    "-n",
    "%s%n%d",
    "\\",
    "\\n \\0 \\c \\x41 \\\\",
    "'; touch pwned; '",
    "'\"'\"'$(touch pwned)`touch pwned`",
    "\n)\ntouch pwned\n(",
    "!! !$ ${IFS} $(touch pwned)",
    "EOF\nbody() { :; }\n",
    "a\r\nb\tc\x1b[201~\ntouch pwned\n",
    "\x00 and \x7f and \x9b and \u202e and \xa0 end\n\n",
    "@/etc/passwd",
]


@pytest.fixture(autouse=True)
def programs() -> None:
    for name in ("bash", "curl", "openssl"):
        if not shutil.which(name):
            cannot_run(f"{name} is not installed")


def run(
    text: str, directory: Path, *, shell: str = "bash", **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """Paste it into a shell."""
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(directory),
        "http_proxy": "http://127.0.0.1:1",
        "SECRET": SECRET,
        **variables,
    }
    return subprocess.run(
        [shell],
        input=text.encode(),
        cwd=directory,
        env=environment,
        capture_output=True,
        check=False,
    )


def is_signed(request: Received) -> bool:
    standard = signing.standard_signature(
        SECRET,
        event_id=EVENT_ID,
        timestamp=int(request.headers["webhook-timestamp"]),
        body=request.body,
    )
    return (
        by_the_contract(request, SECRET)
        and request.headers["webhook-signature"] == standard
    )


def test_what_it_sends_is_what_is_delivered(sink: Sink, tmp_path: Path):
    sink.behave = sinks.answer(202, body=b"thanks")
    text = curl.command_for(sink.url, topic=TOPIC, event_id=EVENT_ID, body=JSON_BODY)

    ended = run(text, tmp_path)

    [request] = sink.requests
    assert ended.stdout.startswith(b"HTTP/1.1 202")
    assert ended.stdout.endswith(b"thanks")
    assert request.request_line == "POST /hook?token=SECRET-TOKEN HTTP/1.1"
    assert request.body == JSON_BODY.encode()
    assert by_the_contract(request, SECRET)
    assert by_standard_webhooks(request, SECRET)
    expected = signing.headers(
        [SECRET],
        event_id=EVENT_ID,
        timestamp=int(request.headers["X-ACW-Timestamp"]),
        topic=TOPIC,
        body=request.body,
    )
    assert {name: request.headers[name] for name in expected} == expected
    assert request.headers["User-Agent"] == "ACW-Webhooks"


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_no_body_breaks_out_or_arrives_changed(sink: Sink, tmp_path: Path, shell: str):
    for body in HOSTILE:
        text = curl.command_for(sink.url, topic=TOPIC, event_id=EVENT_ID, body=body)
        ended = run(text, tmp_path, shell=shell)

        assert ended.stderr == b""
        assert sink.requests[-1].body == body.encode()
        assert is_signed(sink.requests[-1])
        assert all(line.isprintable() for line in text.split("\n"))
    assert len(sink.requests) == len(HOSTILE)
    assert list(tmp_path.iterdir()) == []


def test_no_topic_or_url_breaks_out(sink: Sink, tmp_path: Path):
    topic = "a'; touch pwned; '\"$(touch pwned)\r\nX-Injected: 1\n`touch pwned`"
    url = f"{sink.url}&quoted='%3B$(touch%20pwned)[1-2]{{a,b}}/../x"
    text = curl.command_for(url, topic=topic, event_id=EVENT_ID, body="{}")

    ended = run(text, tmp_path)

    [request] = sink.requests
    assert ended.stderr == b""
    assert request.request_line == f"POST {url.removeprefix(origin(sink))} HTTP/1.1"
    assert request.headers["X-ACW-Topic"] == topic.replace("\r", "?").replace("\n", "?")
    assert "X-Injected" not in request.headers
    assert list(tmp_path.iterdir()) == []


def origin(sink: Sink) -> str:
    return f"http://127.0.0.1:{sink.port}"


def test_what_may_be_a_credential_is_asked_for(sink: Sink, tmp_path: Path):
    text = curl.command_for(
        None,
        topic=TOPIC,
        event_id=EVENT_ID,
        body="{}",
        header_names=["Authorization", "X-Their-Token"],
    )
    given = {
        "URL": sink.url,
        "HEADER_AUTHORIZATION": "Bearer 'x' $y",
        "HEADER_X_THEIR_TOKEN": "t0ken",
    }
    assert SECRET not in text

    for missing in given:
        rest = {name: value for name, value in given.items() if name != missing}
        ended = run(text, tmp_path, **rest)
        assert f"{missing}: set it first" in ended.stderr.decode()
    assert "read -rs SECRET" in run(text, tmp_path, SECRET="").stderr.decode()
    assert sink.requests == []

    run(text, tmp_path, **given)
    [request] = sink.requests
    assert request.headers["Authorization"] == "Bearer 'x' $y"
    assert request.headers["X-Their-Token"] == "t0ken"
    assert is_signed(request)


def test_no_redirect_is_followed(sink: Sink, tmp_path: Path):
    sink.behave = sinks.answer(302, {"Location": f"{origin(sink)}/elsewhere"})
    text = curl.command_for(sink.url, topic=TOPIC, event_id=EVENT_ID, body="{}")

    run(text, tmp_path)

    assert len(sink.requests) == 1
