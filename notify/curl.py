"""A delivery as text for a shell: what a person can paste to send it by hand and see what the receiver says. Pure.

Timestamp and signatures are made when it is run, from ``$SECRET``, so that the text holds no secret and does not grow
old. It sends what ACW sends: the same bytes, no proxy, no redirect followed.
"""

from __future__ import annotations

import re
import shlex
import uuid
from collections.abc import Iterable

SECONDS = 15
"""How long curl waits for the answer."""

_UNFIT = re.compile(r"[^ -~]")

_SCRIPT = """\
(
: "${{SECRET:?first type: read -rs SECRET}}"
body() {{ {body}; }}
id={id}
now=$(date +%s)
acw=$({{ printf '%s.' "$now"; body; }} | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d ' ' -f 1)
standard=$({{ printf '%s.%s.' "$id" "$now"; body; }} | openssl dgst -sha256 -hmac "$SECRET" -binary | openssl base64)
body | curl --disable --noproxy '*' --globoff --path-as-is --include --silent --show-error \\
  --max-time {seconds} --user-agent ACW-Webhooks --data-binary @- \\
  {headers} \\
  --url {url}
)
"""


def command_for(
    url: str | None,
    *,
    topic: str,
    event_id: uuid.UUID,
    body: str,
    header_names: Iterable[str] = (),
) -> str:
    """The text, for any POSIX shell with ``openssl`` and ``curl``.

    Without ``url``, which may be a credential, ``$URL`` is asked for. ``header_names`` are the endpoint's own headers;
    their values, which may be credentials too, are asked for as ``$HEADER_<NAME>``.
    """
    headers = [
        "'Content-Type: application/json'",
        shlex.quote("X-ACW-Topic: " + _UNFIT.sub("?", topic)),
        '"X-ACW-Event-Id: $id"',
        '"X-ACW-Timestamp: $now"',
        '"X-ACW-Signature: sha256=$acw"',
        '"webhook-id: $id"',
        '"webhook-timestamp: $now"',
        '"webhook-signature: v1,$standard"',
        # Not to be asked whether a large body may be sent, which ACW does not do.
        "'Expect:'",
        *(f'"{name}: {_asked("HEADER_" + _variable(name))}"' for name in header_names),
    ]
    return _SCRIPT.format(
        body=_printed(body),
        id=shlex.quote(str(event_id)),
        seconds=SECONDS,
        headers=" \\\n  ".join(f"--header {header}" for header in headers),
        url=f'"{_asked("URL")}"' if url is None else shlex.quote(url),
    )


def _printed(body: str) -> str:
    """The command that prints these bytes and no other.

    What does not show is written as octal: terminals act on some of it, and browsers copy some of it as something else.
    """
    if body.isprintable():
        return f"printf %s {shlex.quote(body)}"
    return f"printf %b {shlex.quote(''.join(map(_escaped, body)))}"


def _escaped(character: str) -> str:
    if character == "\\":
        return r"\\"
    if character.isprintable():
        return character
    return "".join(f"\\0{byte:03o}" for byte in character.encode())


def _variable(header: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", header.upper())


def _asked(variable: str) -> str:
    return f"${{{variable}:?set it first}}"
