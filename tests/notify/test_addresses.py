from __future__ import annotations

import ipaddress

import pytest

from notify.addresses import REFUSED, parse, refusal


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "8.8.8.8",
        "93.184.216.34",
        "172.15.255.255",
        "172.32.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "223.255.255.255",
        "2606:2800:220:1::1",
        "2a00:1450:4001::8",
    ],
)
def test_public_addresses_may_be_reached(address: str):
    assert refusal(parse(address), ()) is None


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("127.0.0.1", "127.0.0.0/8"),
        ("0.0.0.1", "0.0.0.0/8"),
        ("10.1.2.3", "10.0.0.0/8"),
        ("172.16.0.1", "172.16.0.0/12"),
        ("192.168.1.1", "192.168.0.0/16"),
        ("169.254.169.254", "169.254.0.0/16"),
        ("100.100.100.200", "100.64.0.0/10"),
        ("168.63.129.16", "168.63.129.16/32"),
        ("224.0.0.1", "224.0.0.0/3"),
        ("255.255.255.255", "224.0.0.0/3"),
        ("::1", "::/96"),
        ("::", "::/96"),
        ("::7f00:1", "::/96"),
        ("64:ff9b::a9fe:a9fe", "64:ff9b::/96"),
        ("2002:7f00:1::", "2002::/16"),
        ("2001:0:4136:e378::1", "2001::/23"),
        ("fe80::1", "fe80::/9"),
        ("fec0::1", "fe80::/9"),
        ("fd00::1", "fc00::/7"),
        ("ff02::1", "ff00::/8"),
        ("100:0:0:1::1", "100:0:0:1::/64"),
        ("::ffff:0:7f00:1", "::/3"),
        ("64:ff9b:2::1", "::/3"),
        ("4000::1", "4000::/2"),
        ("fe00::1", "8000::/1"),
    ],
)
def test_special_addresses_are_refused_with_the_network_that_they_are_in(
    address: str, network: str
):
    assert (refusal(parse(address), ()) or "").startswith(f"{network} (")


@pytest.mark.parametrize("network", REFUSED, ids=str)
def test_each_refused_network_is_refused_from_its_first_to_its_last_address(network):
    assert refusal(network[0], ())
    assert refusal(network[-1], ())


def test_an_ipv4_mapped_address_is_judged_as_the_ipv4_address_in_it():
    assert parse("::ffff:127.0.0.1") == ipaddress.ip_address("127.0.0.1")
    assert refusal(parse("::ffff:1.1.1.1"), ()) is None


def test_a_zone_is_not_part_of_the_address():
    assert parse("fe80::1%eth0") == ipaddress.ip_address("fe80::1")


def test_an_allowed_network_comes_before_the_table():
    allowed = [ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("::1/128")]

    assert refusal(parse("10.1.2.3"), allowed) is None
    assert refusal(parse("::1"), allowed) is None
    assert refusal(parse("10.2.0.1"), allowed)
