"""The table of addresses against two libraries of other hands: what either of them denies, ours refuses too.

ssrfguard reads what an address carries inside it (NAT64, 6to4, Teredo); antissrf has the widest list. Around the edges
of all that any of the three lists, and at random.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterator

from AntiSSRF import (  # type: ignore[import-untyped] # it has no types
    AntiSSRFPolicy,
    IPAddressRanges,
    PolicyConfigOptions,
)
from ssrfguard import DEFAULT_DENIED

from notify.addresses import REFUSED, Address, Network, parse, refusal

SEED = 20261130
ROUNDS = 1_000


def denied_by_ssrfguard(address: Address) -> bool:
    return DEFAULT_DENIED.classify(address).blocked


_antissrf = AntiSSRFPolicy(PolicyConfigOptions.EXTERNAL_ONLY_LATEST)


def denied_by_antissrf(address: Address) -> bool:
    allowed: bool = _antissrf._is_str_ip_address_connection_allowed(str(address))
    return not allowed


JUDGES = {"ssrfguard": denied_by_ssrfguard, "antissrf": denied_by_antissrf}


def listed() -> set[Network]:
    """Every range that any of the three names."""
    theirs = {ipaddress.ip_network(r) for r in IPAddressRanges.recommended_latest}
    return {*REFUSED, *theirs, *(block.network for block in DEFAULT_DENIED.blocks)}


def edges(network: Network) -> Iterator[Address]:
    """Its first and last addresses, and their neighbours on either side."""
    kind = type(network[0])
    last = 2**network.max_prefixlen - 1
    for edge in (int(network[0]), int(network[-1])):
        for number in range(edge - 2, edge + 3):
            if 0 <= number <= last:
                yield kind(number)


def carrying(inner: ipaddress.IPv4Address) -> Iterator[Address]:
    """The IPv6 addresses that lead to this IPv4 address."""
    number = int(inner)
    for prefix, shift in (
        ("::ffff:0:0", 0),
        ("::ffff:0:0:0", 0),
        ("::", 0),
        ("64:ff9b::", 0),
        ("64:ff9b:1::", 0),
        ("2002::", 80),
        ("2001::", 64),
    ):
        yield ipaddress.IPv6Address(
            int(ipaddress.IPv6Address(prefix)) | number << shift
        )
    # Teredo keeps its client with every bit turned.
    yield ipaddress.IPv6Address(
        int(ipaddress.IPv6Address("2001::")) | number ^ 0xFFFFFFFF
    )


def around_all_edges() -> Iterator[Address]:
    for network in sorted(listed(), key=lambda network: (network.version, network)):
        for address in edges(network):
            yield address
            if isinstance(address, ipaddress.IPv4Address):
                yield from carrying(address)


def at_random() -> Iterator[Address]:
    rng = random.Random(SEED)  # noqa: S311 (for tests)
    networks = sorted(listed(), key=lambda network: (network.version, network))
    for _ in range(ROUNDS):
        inner = ipaddress.IPv4Address(rng.getrandbits(32))
        yield inner
        yield from carrying(inner)
        yield ipaddress.IPv6Address(rng.getrandbits(128))
        # The part of IPv6 that is handed out.
        yield ipaddress.IPv6Address(0b001 << 125 | rng.getrandbits(125))
        yield (chosen := rng.choice(networks))[rng.randrange(chosen.num_addresses)]


def let_through(addresses: Iterator[Address]) -> list[str]:
    """Those that a judge denies and the table does not."""
    return [
        f"{address} ({name})"
        for address in addresses
        if refusal(parse(str(address)), ()) is None
        for name, denies in JUDGES.items()
        if denies(address)
    ]


def test_around_every_edge_nothing_that_a_judge_denies_may_be_reached():
    assert let_through(around_all_edges()) == []


def test_at_random_nothing_that_a_judge_denies_may_be_reached():
    assert let_through(at_random()) == []


def test_the_judges_deny_and_permit():
    """Or the tests above would compare with nothing."""
    for denies in JUDGES.values():
        assert denies(ipaddress.ip_address("10.0.0.1"))
        assert denies(ipaddress.ip_address("fe80::1"))
        assert not denies(ipaddress.ip_address("1.1.1.1"))
        assert not denies(ipaddress.ip_address("2606:4700::1111"))


def test_every_way_to_carry_loopback_is_refused_also_where_a_judge_permits_it():
    inner = ipaddress.IPv4Address("127.0.0.1")
    by_judge = {
        str(address): [name for name, denies in JUDGES.items() if denies(address)]
        for address in carrying(inner)
    }

    assert all(refusal(parse(address), ()) for address in by_judge)
    assert by_judge["::7f00:1"] == ["ssrfguard"]
