from __future__ import annotations

import pytest

from acw.benchmark.figures import Figure, of_rounds, percentile


def test_a_ratio_is_the_value_as_a_part_of_the_ceiling():
    figure = Figure(name="drain", value=30, unit="jobs/s", ceiling=40)
    assert figure.ratio == 0.75


def test_without_a_ceiling_there_is_no_ratio():
    assert Figure(name="memory", value=70, unit="MiB", ceiling=None).ratio is None


def test_rounds_give_medians_and_the_range():
    figure = of_rounds("drain", [10, 30, 20], unit="jobs/s", ceilings=[40, 40, 50])
    assert (figure.value, figure.lowest, figure.highest) == (20, 10, 30)
    assert figure.ceiling == 40


def test_the_ratio_is_the_median_of_the_rounds_own_ratios():
    # The machine was four times slower in the second round: both were.
    figure = of_rounds("drain", [80, 20, 90], unit="jobs/s", ceilings=[100, 25, 100])
    assert figure.ratio == pytest.approx(0.8)


def test_rounds_of_different_numbers_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        of_rounds("drain", [1, 2], unit="jobs/s", ceilings=[1])


@pytest.mark.parametrize(
    ("percent", "expected"), [(50, 50), (95, 95), (99, 99), (100, 100), (0, 1)]
)
def test_percentiles_are_values_that_were_measured(percent: int, expected: int):
    assert percentile(range(100, 0, -1), percent) == expected


def test_the_percentile_of_one_value_is_that():
    assert percentile([7], 50) == 7


def test_nothing_has_no_percentile():
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 50)
