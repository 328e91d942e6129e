from __future__ import annotations

from acw.torture.job_types import KINDS
from jobs import registry


def test_the_shares_are_of_a_thousand():
    assert sum(kind.share for kind in KINDS.values()) == 1_000
    assert all(kind.share > 0 for kind in KINDS.values())


def test_no_type_of_the_torture_is_one_of_the_products():
    assert not set(KINDS) & set(registry.job_types())
