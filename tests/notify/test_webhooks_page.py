"""What ``docs/webhooks.md`` tells receivers, tried on what ACW sends."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from notify import sending, signing, topics
from notify.delivery import Verdict, verdict_of
from notify.events import LogEvent
from notify.models import WebhookAttempt
from tests.missing import cannot_run
from tests.notify.factories import SECRET, TOPIC, EndpointFactory
from tests.notify.sinks import Sink

PAGE = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text()
BODY = '{"title":"é😀\u2028 \\u0000 $HOME `id` \'\\\\n"}\r\n'.encode()


@dataclass(frozen=True, kw_only=True)
class Case:
    """A request, the secret that its receiver has, and whether it is to be taken."""

    headers: Mapping[str, str]
    body: bytes = BODY
    secret: str = SECRET
    genuine: bool


def snippet(language: str, name: str) -> str:
    """The program of this name that the page shows."""
    comment = "//" if language == "javascript" else "#"
    begins = re.escape(f"{comment} {name}")
    [source] = re.findall(rf"```{language}\n({begins}\b.*?)```", PAGE, re.DOTALL)
    return str(source)


def headers_of(
    *secrets: str, age: float = 0, body: bytes = BODY, topic: str = TOPIC
) -> dict[str, str]:
    return signing.headers(
        secrets or [SECRET],
        event_id=uuid.uuid4(),
        timestamp=int(time.time() - age),
        topic=topic,
        body=body,
    )


def cases_of(timestamp: str, signature: str) -> dict[str, Case]:
    """Requests good and bad, for a scheme with these two headers."""
    headers = headers_of()
    good = Case(headers=headers, genuine=True)
    bad = replace(good, genuine=False)

    def at(value: str) -> Case:
        return replace(bad, headers={**headers, timestamp: value})

    def signed(value: str) -> Case:
        return replace(bad, headers={**headers, signature: value})

    return {
        "genuine": good,
        "empty": Case(headers=headers_of(body=b""), body=b"", genuine=True),
        "a while ago": replace(good, headers=headers_of(age=290)),
        "a little ahead": replace(good, headers=headers_of(age=-290)),
        "old": replace(bad, headers=headers_of(age=310)),
        "far ahead": replace(bad, headers=headers_of(age=-310)),
        "altered": replace(bad, body=BODY + b" "),
        "forged": replace(bad, headers=headers_of(SECRET[::-1])),
        "another's": replace(bad, secret=SECRET[::-1]),
        "signed with no secret for who has none": replace(
            bad, headers=headers_of(""), secret=""
        ),
        "without headers": replace(bad, headers={}),
        "another time": at(str(int(headers[timestamp]) + 1)),
        "no time": at(""),
        "a time below zero": at("-1"),
        "a long time": at("9" * 5000),
        "a time in other digits": at("\u0661\u0662\u0663"),
        "a time and more": at(headers[timestamp] + " "),
        "no signature": signed(""),
        "a shorter signature": signed(headers[signature][:-1]),
        "a longer signature": signed(headers[signature] + "0"),
        "a signature that is no text of its kind": signed("é"),
        "a signature that is no text at all": signed("\udce9"),
    }


def in_python(cases: Sequence[Case], name: str) -> list[bool]:
    namespace: dict[str, Any] = {}
    exec(snippet("python", name), namespace)  # noqa: S102 (the page's code is what is tested)
    verifier: Callable[[Mapping[str, str], bytes, str], bool]
    verifier = namespace.get("is_genuine") or namespace["is_from_acw"]
    return [verifier(case.headers, case.body, case.secret) for case in cases]


def in_node(cases: Sequence[Case], tmp_path: Path) -> list[bool]:
    node = shutil.which("node") or cannot_run("node is not installed")
    (tmp_path / "verify.js").write_text(snippet("javascript", "verify.js"))
    (tmp_path / "ask.js").write_text(
        """
        const { isGenuine } = require("./verify.js");
        const cases = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
        const answers = cases.map(([headers, body, secret]) =>
          isGenuine(headers, Buffer.from(body, "base64"), secret));
        console.log(JSON.stringify(answers));
        """
    )
    asked = [
        (
            {name.lower(): value for name, value in case.headers.items()},
            base64.b64encode(case.body).decode(),
            case.secret,
        )
        for case in cases
    ]
    answered = subprocess.run(
        [node, tmp_path / "ask.js"],
        input=json.dumps(asked),
        check=True,
        capture_output=True,
        text=True,
    )
    answers: list[bool] = json.loads(answered.stdout)
    return answers


def in_a_shell(cases: Sequence[Case], tmp_path: Path) -> list[bool]:
    if not shutil.which("openssl"):
        cannot_run("openssl is not installed")
    script, body = tmp_path / "verify.sh", tmp_path / "body"
    script.write_text(snippet("sh", "verify.sh"))
    answers = []
    for case in cases:
        body.write_bytes(case.body)
        ended = subprocess.run(
            ["/bin/sh", script, body],
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "SECRET": case.secret,
                "TIMESTAMP": case.headers.get("X-ACW-Timestamp", ""),
                "SIGNATURE": case.headers.get("X-ACW-Signature", ""),
            },
            check=False,
            capture_output=True,
        )
        assert ended.stderr == b""
        answers.append(ended.returncode == 0)
    return answers


@pytest.mark.parametrize("language", ["python", "node", "shell"])
def test_a_verifier_of_the_page_takes_what_is_genuine_and_nothing_else(
    language: str, tmp_path: Path
):
    cases = cases_of("X-ACW-Timestamp", "X-ACW-Signature")
    verifiers: dict[str, Callable[[], list[bool]]] = {
        "python": lambda: in_python([*cases.values()], "verify.py"),
        "node": lambda: in_node([*cases.values()], tmp_path),
        "shell": lambda: in_a_shell([*cases.values()], tmp_path),
    }

    expected = {name: case.genuine for name, case in cases.items()}
    assert dict(zip(cases, verifiers[language](), strict=True)) == expected


def test_where_openssl_is_missing_the_shells_verifier_takes_nothing(tmp_path: Path):
    """Or two empty results would be equal, whatever the signature."""
    script, body = tmp_path / "verify.sh", tmp_path / "body"
    script.write_text(snippet("sh", "verify.sh"))
    body.write_bytes(BODY)
    for tool in ("cat", "cut", "date"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or cannot_run(tool))
    headers = headers_of()

    for signature in ("", "forged", headers["X-ACW-Signature"]):
        ended = subprocess.run(
            ["/bin/sh", script, body],
            env={
                "PATH": str(tmp_path),
                "SECRET": SECRET,
                "TIMESTAMP": headers["X-ACW-Timestamp"],
                "SIGNATURE": signature,
            },
            check=False,
            capture_output=True,
        )
        assert b"openssl" in ended.stderr
        assert ended.returncode == 1


def test_the_pages_use_of_a_library_takes_what_is_genuine_and_nothing_else():
    cases = cases_of("webhook-timestamp", "webhook-signature")
    # The library also parses the body as JSON, takes base64 with something behind it, and a number with spaces.
    for name in ("empty", "a longer signature", "a time and more"):
        del cases[name]
    asked = [
        replace(case, secret=case.secret and signing.standard_form(case.secret))
        for case in cases.values()
    ]

    expected = {name: case.genuine for name, case in cases.items()}
    answers = in_python(asked, "standard.py")
    assert dict(zip(cases, answers, strict=True)) == expected


@pytest.mark.django_db
def test_what_is_really_sent_is_genuine_in_every_language(sink: Sink, tmp_path: Path):
    sending.send_test(EndpointFactory(url=sink.url))
    [request] = sink.requests
    case = Case(headers=request.headers, body=request.body, genuine=True)
    standard = replace(case, secret=signing.standard_form(SECRET))

    assert in_python([case], "verify.py") == [True]
    assert in_python([standard], "standard.py") == [True]
    assert in_node([case], tmp_path) == [True]
    assert in_a_shell([case], tmp_path) == [True]


def test_while_a_secret_is_changed_a_receiver_may_accept_either():
    [either] = re.findall(r"```python\n(genuine = any.*?)\n```", PAGE)
    verifier: dict[str, Any] = {}
    exec(snippet("python", "verify.py"), verifier)  # noqa: S102 (as above)
    new = "the-next-secret-0123456789abcdef"

    def genuine(*signed_by: str) -> bool:
        names = {
            "is_genuine": verifier["is_genuine"],
            "headers": headers_of(*signed_by),
            "body": BODY,
            "new": new,
            "old": SECRET,
        }
        exec(either, names)  # noqa: S102 (as above)
        return bool(names["genuine"])

    assert genuine(SECRET)
    assert genuine(SECRET, new)
    assert genuine(new, SECRET)
    assert genuine(new)
    assert not genuine(SECRET[::-1])


def test_the_pages_way_from_one_form_of_a_secret_to_the_other_is_ours():
    [command] = re.findall(r"`(printf 'whsec_.*?base64 -w 0\)\")`", PAGE)

    shown = subprocess.run(
        ["/bin/sh", "-c", command],
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "SECRET": SECRET},
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    assert shown == signing.standard_form(SECRET) + "\n"
    assert f"`{signing.standard_form(SECRET)}`" in PAGE


def test_the_pages_first_request_is_its_vector_of_standard_webhooks():
    [body] = re.findall(r"`(\{\"id\".*?\})`", PAGE)
    headers = signing.headers(
        [SECRET],
        event_id=uuid.UUID("7b0c3f0e-5b1e-4a57-9a53-0d6a4c9e2f11"),
        timestamp=1700000000,
        topic="workspace.sync_failed",
        body=body.encode(),
    )
    shown = PAGE.split("```http\n")[1].split("\n\n")[0]

    assert len(body.encode()) == 108
    for name, value in headers.items():
        assert f"\n{name}: {value}\n" in shown


def test_the_pages_vector_is_what_is_signed():
    signature = signing.signature(SECRET, timestamp=1700000000, body=b'{"a":1}')

    assert f"`{SECRET}`" in PAGE
    assert f"`{signature}`" in PAGE


def test_every_public_name_is_on_the_page():
    names = [
        *signing.headers(
            [SECRET, SECRET], event_id=uuid.UUID(int=0), timestamp=0, topic="", body=b""
        ),
        *LogEvent,
        *WebhookAttempt.Verdict.values,
        topics.TEST.name,
    ]

    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_the_verdicts_on_the_page_are_those_of_the_sender():
    table = PAGE.split("| you answer | ACW |")[1].split("\n\n")[0]
    tried_again = {s for s in range(400, 500) if verdict_of(s) is Verdict.RETRY}
    gives_up = {s for s in range(300, 400) if verdict_of(s) is Verdict.PERMANENT}

    assert f"| {', '.join(map(str, sorted(tried_again)))} | tries again |" in table
    assert f"| {', '.join(map(str, sorted(gives_up)))} | gives up at once" in table
