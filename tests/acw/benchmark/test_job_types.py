from __future__ import annotations

from acw.benchmark import job_types
from jobs import registry


def test_no_type_of_the_benchmark_is_one_of_the_products():
    assert len(job_types.ALL) == 4
    assert not job_types.ALL & set(registry.job_types())
