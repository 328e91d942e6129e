from __future__ import annotations

from jobs import registry


def test_the_runner_that_is_counted_is_none_of_the_products():
    """What it does is looked at in ``test_handlers``, in a process that has it."""
    assert "torture_tick" not in registry.runners()
