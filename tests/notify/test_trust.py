from __future__ import annotations

import os
import ssl
from pathlib import Path

import certifi
import pytest

from notify import trust
from notify.exceptions import UnreadableBundle
from tests.notify.certificates import Authority


def subjects(context: ssl.SSLContext) -> list[object]:
    return [authority["subject"] for authority in context.get_ca_certs()]


def test_without_a_bundle_certifis_authorities_are_trusted():
    context = trust.context("", otherwise=certifi.where())

    assert len(subjects(context)) > 50
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_a_bundle_takes_their_place(tmp_path: Path):
    authority = Authority(tmp_path)

    context = trust.context(str(authority.bundle), otherwise=certifi.where())

    assert len(subjects(context)) == 1
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_a_bundle_is_read_once_and_again_when_it_has_changed(tmp_path: Path):
    bundle = Authority(tmp_path).bundle
    first = trust.context(str(bundle), otherwise="")
    assert trust.context(str(bundle), otherwise="") is first

    (tmp_path / "other").mkdir()
    os.replace(Authority(tmp_path / "other").bundle, bundle)

    renewed = trust.context(str(bundle), otherwise="")
    assert renewed is not first
    assert first.get_ca_certs() != renewed.get_ca_certs()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file or directory"),
        (b"", "it holds no certificate in PEM form"),
        (b"not a certificate \xff", "it holds no certificate in PEM form"),
    ],
    ids=["missing", "empty", "something else"],
)
def test_a_bundle_that_cannot_be_used_names_the_setting_and_the_file(
    tmp_path: Path, content: bytes | None, reason: str
):
    bundle = tmp_path / "authorities.pem"
    if content is not None:
        bundle.write_bytes(content)

    with pytest.raises(UnreadableBundle) as refused:
        trust.check(str(bundle))

    assert str(refused.value) == (
        f"NOTIFY_WEBHOOK_CA_BUNDLE: {bundle} cannot be used: {reason}"
    )


def test_no_bundle_and_a_good_one_pass_the_check(tmp_path: Path):
    trust.check(None)
    trust.check("")
    trust.check(str(Authority(tmp_path).bundle))
