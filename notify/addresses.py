"""Which addresses a webhook may reach. Pure: no name is looked up here.

The table is written out, since ``ipaddress.is_private`` and ``is_global`` differ between builds of
Python and miss whole ranges (multicast, NAT64, 100.64.0.0/10).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# The ranges that IANA's special-purpose registries list, and the addresses at which cloud providers serve
# credentials to their machines. A few of them are reached by everybody, but no receiver of webhooks is there. Ranges that carry an IPv4 address inside an IPv6 one
# (NAT64, 6to4, Teredo, IPv4-compatible) are refused whole; IPv4-mapped ones are unwrapped first.
REFUSED: dict[Network, str] = {
    ipaddress.ip_network(network): what
    for network, what in {
        "0.0.0.0/8": "this host",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "shared address space",
        "127.0.0.0/8": "loopback",
        "169.254.0.0/16": "link-local",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "protocol assignments",
        "192.0.2.0/24": "documentation",
        "192.31.196.0/24": "AS112",
        "192.52.193.0/24": "multicast tunnels",
        "192.88.99.0/24": "6to4 relays",
        "192.168.0.0/16": "private",
        "192.175.48.0/24": "AS112",
        "198.18.0.0/15": "benchmarking",
        "198.51.100.0/24": "documentation",
        "203.0.113.0/24": "documentation",
        "224.0.0.0/3": "multicast and reserved",
        "168.63.129.16/32": "cloud platform",
        "::/96": "loopback and IPv4-compatible",
        "64:ff9b::/96": "NAT64",
        "64:ff9b:1::/48": "NAT64",
        "100::/64": "discard",
        "100:0:0:1::/64": "dummy prefix",
        "2001::/23": "protocol assignments",
        "2001:db8::/32": "documentation",
        "2002::/16": "6to4",
        "2620:4f:8000::/48": "AS112",
        "3fff::/20": "documentation",
        "5f00::/16": "segment routing",
        "fc00::/7": "private",
        "fe80::/9": "link-local and site-local",
        "ff00::/8": "multicast",
        # All but 2000::/3, of which alone addresses are given out: what a network translates or
        # tunnels (::ffff:0:0:0/96 carries an IPv4 address too) is outside it.
        "::/3": "not global unicast",
        "4000::/2": "not global unicast",
        "8000::/1": "not global unicast",
    }.items()
}


def parse(text: str) -> Address:
    """The address as ``getaddrinfo`` gives it, without zone, an IPv4-mapped one as IPv4."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def refusal(address: Address, allowed: Iterable[Network]) -> str | None:
    """Why this address may not be reached, e.g. ``10.0.0.0/8 (private)``; None where it may.

    ``allowed`` (``NOTIFY_WEBHOOK_ALLOW_NETWORKS``) comes before the table.
    """
    if any(address in network for network in allowed):
        return None
    for network, what in REFUSED.items():
        if address in network:
            return f"{network} ({what})"
    return None
