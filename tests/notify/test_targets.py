from __future__ import annotations

import pytest

from notify import targets
from notify.exceptions import InvalidUrl


@pytest.mark.parametrize(
    ("url", "used"),
    [
        ("https://Hooks.Example.COM/a?b=C", "https://hooks.example.com/a?b=C"),
        ("  http://host:8080/x\n", "http://host:8080/x"),
        ("http://[::1]:8000/", "http://[::1]:8000/"),
        ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]/"),
        ("https://bücher.example/a", "https://xn--bcher-kva.example/a"),
        ("https://under_score.example.", "https://under_score.example."),
        ("HTTP://host", "http://host"),
        ("http://127.1/", "http://127.1/"),
        ("http://host//a/../%7eb//?c=/%2f+", "http://host//a/../%7eb//?c=/%2f+"),
        ("http://host/{a}|?b[]=^`", "http://host/%7Ba%7D%7C?b%5B%5D=%5E%60"),
    ],
)
def test_a_url_is_used_in_its_plain_form(url: str, used: str):
    assert targets.parse(url).url == used
    assert targets.parse(used).url == used


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("ftp://host/x", "must begin with https:// or http://"),
        ("", "must begin with https:// or http://"),
        ("//host/x", "must begin with https:// or http://"),
        ("http://user:pass@host/", "user name or password"),
        ("http://user@host/", "user name or password"),
        ("http://good.example\\@evil.example/", "user name or password"),
        ("http://evil.example\\.good.example/", "labels of a-z"),
        ("http:///path", "must name a host"),
        ("http://host/#part", "fragment"),
        ("http://host:0/", "between 1 and 65535"),
        ("http://host:99999/", "cannot be read"),
        ("http://[::1/", "cannot be read"),
        ("http://[fe80::1%25eth0]/", "IPv6"),
        ("http://[::1]host/", "cannot be read"),
        ("http://[v1.host]/", "cannot be read"),
        ("http://host/a b", "spaces or control characters"),
        ("http://host/a\tb", "spaces or control characters"),
        ("http://ho\nst/", "spaces or control characters"),
        ("http://host/\x00", "spaces or control characters"),
        ("http://host/é", "percent-encode"),
        ("http://host/<x>", "percent-encode"),
        ("http://host/100%", "written %25"),
        ("http://host/?a=%zz", "written %25"),
        ("http://host/a\\b", "percent-encode"),
        (f"http://{'a' * 64}.example/", "labels of a-z"),
        ("http://a..b/", "labels of a-z"),
        ("http://ex%61mple/", "labels of a-z"),
        ("http://☃.example/", "international name"),
        (f"http://host/{'a' * 2000}", "longer than 2,000"),
    ],
)
def test_a_url_that_breaks_a_rule_is_refused_and_not_quoted(url: str, rule: str):
    with pytest.raises(InvalidUrl, match=rule) as refused:
        targets.parse(url)

    assert not url or url not in str(refused.value)


def test_what_is_shown_of_a_url_is_its_origin_and_a_hash():
    one = targets.parse("https://hooks.example:8443/T000/one?token=x")
    other = targets.parse("https://hooks.example:8443/T000/other?token=x")

    assert one.origin == "https://hooks.example:8443"
    assert one.label.startswith("https://hooks.example:8443 #")
    assert one.label != other.label
    assert "T000" not in repr(one)
    assert "token" not in repr(one)


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("https://hooks.example/a", "hooks.example"),
        ("https://hooks.example:443/a", "hooks.example"),
        ("https://hooks.example:80/a", "hooks.example:80"),
        ("http://hooks.example.:80/a", "hooks.example"),
        ("http://[::1]:8000/", "[::1]:8000"),
    ],
)
def test_the_host_header_names_a_port_that_is_not_the_schemes_own(
    url: str, authority: str
):
    assert targets.parse(url).authority == authority


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("/elsewhere?x=1", "https://hooks.example"),
        ("http://other.example:81/a?token=x#y", "http://other.example:81"),
        ("//other.example/a", "https://other.example"),
        ("//other.example/Anmeldung für %/", "https://other.example"),
        ("http://user:pass@other.example/", "an address that cannot be read"),
        ("javascript:alert(1)", "an address that cannot be read"),
        ("http://[", "an address that cannot be read"),
    ],
)
def test_of_a_redirect_only_the_origin_is_shown(location: str, shown: str):
    base = targets.parse("https://hooks.example/T000")

    assert targets.redirect_target(location, base) == shown
