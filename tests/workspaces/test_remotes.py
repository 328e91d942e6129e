from __future__ import annotations

import pytest
from pytest_django import Settings

from workspaces import remotes
from workspaces.exceptions import RefusedUrl

ACCEPTED = {
    "https://git.example/team/project.git": "https",
    "https://git.example:8443/project": "https",
    "https://[2001:db8::1]:8443/project.git": "https",
    "HTTPS://git.example/project": "https",
    "ssh://git@git.example:2222/team/project.git": "ssh",
    "ssh://git.example/project": "ssh",
    "ssh://[::1]/project": "ssh",
    "git@git.example:team/project.git": "ssh",
    "git.example:project": "ssh",
    "git.example:/srv/git/project": "ssh",
    "/srv/git/project.git": "file",
    "/srv/git/with:colon": "file",
    "/srv/git/a@b": "file",
    "git@git.example:team/a@b": "ssh",
    "/srv/my git/project.git": "file",
    "file:///srv/git/project.git": "file",
    "file:///srv/my%20git/project.git": "file",
    "https://git.example/my%20project": "https",
}

REFUSED = [
    "",
    "-",
    "--upload-pack=touch FIRED",
    "--upload-pack=x:y",
    "-oProxyCommand=x:y",
    "-u/bin/sh",
    "ext::sh -c touch% FIRED",
    "ext::sh",
    "fd::17",
    "transport::address",
    "::x",
    "ssh://-oProxyCommand=touch/x",
    "ssh://git@-oProxyCommand=touch/x",
    "ssh://-git@git.example/x",
    "-oProxyCommand@git.example:x",
    "git@-oProxyCommand=x:y",
    "git@git.example:-x",
    "git@git.example:",
    "a@b@c:d",
    "https://",
    "https:///path",
    "https://git.example",
    "https://git.example/",
    "https://git.example:port/x",
    "https://git.example:99999/x",
    "https://git_!.example/x",
    "https://git.example/x?token=SECRET",
    "https://git.example/x#SECRET",
    "https://git.example/x\nSECRET",
    "https://git.example/x%0aSECRET",
    "https://git.example/x%00",
    "https://git.example/a b",
    "https://git.example\\@evil.example/x",
    "https://user:SECRET@git.example/x",
    "https://SECRET@git.example/x",
    "ssh://user:SECRET@git.example/x",
    "user:SECRET@git.example/x",
    "user:SECRET@git.example:x",
    "user:SECRET@git.example:22/x",
    "https:/user:SECRET@git.example/x",
    "https:SECRET@git.example/x",
    "ssh:/SECRET@git.example/x",
    "//user:SECRET@git.example/x",
    "file:////user:SECRET@git.example/x",
    "https://git.example/https://user:SECRET@git.example/x",
    "git.example:https://user:SECRET@git.example/x",
    "http://git.example/x",
    "git://git.example/x",
    "ftp://git.example/x",
    "javascript://x/y",
    "file://host/srv/x",
    "relative/path",
    "../up",
    "~user/x",
    "C:\\repo",
    " /srv/x",
    "/srv/x\n",
    "/srv/x\u2028y",
    "/srv/a%0ab",
    "/srv/\x1b[2J",
    "https://git.example/" + "x" * 2000,
]


@pytest.mark.parametrize("url", list(ACCEPTED))
def test_known_forms_are_accepted_as_they_are(url: str):
    remote = remotes.parse(url)
    assert (remote.url, remote.protocol) == (url, ACCEPTED[url])


@pytest.mark.parametrize("url", REFUSED)
def test_every_other_form_is_refused_and_no_secret_is_quoted(url: str):
    with pytest.raises(RefusedUrl) as refusal:
        remotes.parse(url)
    assert "SECRET" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_the_refusal_of_a_password_says_what_to_do_instead():
    with pytest.raises(RefusedUrl, match="ssh with a key"):
        remotes.parse("https://user:SECRET@git.example/x")


@pytest.mark.parametrize("url", ["/srv/x", "file:///srv/x"])
def test_files_are_refused_where_the_setting_has_them_not(settings: Settings, url: str):
    settings.ACW_GIT_PROTOCOLS = ["https"]
    with pytest.raises(RefusedUrl, match=r"'file' is not allowed here.*allows: https"):
        remotes.parse(url)


def test_the_form_of_scp_is_the_protocol_ssh(settings: Settings):
    settings.ACW_GIT_PROTOCOLS = []
    with pytest.raises(RefusedUrl, match=r"'ssh' is not allowed here.*allows: none"):
        remotes.parse("git@git.example:x")


def test_an_unknown_scheme_is_refused_even_where_a_helper_of_its_name_could_exist(
    settings: Settings,
):
    with pytest.raises(RefusedUrl, match="'ext' is not allowed"):
        remotes.parse("ext://host/x")


def test_the_host_of_a_url_is_known_with_its_port_and_a_path_has_none():
    hosts = {
        "https://git.example/a": "git.example",
        "https://GIT.example:8443/a": "git.example:8443",
        "ssh://git@git.example/a": "git.example",
        "git@git.example:a.git": "git.example",
        "git.example:a.git": "git.example",
        "file:///srv/a.git": "",
        "/srv/a:b.git": "",
        "nonsense": "",
    }
    assert {url: remotes.host_of(url) for url in hosts} == hosts
    for url, host in hosts.items():
        assert remotes.is_path(url) == (not host and url != "nonsense"), url
