from __future__ import annotations

from jobs.suggestions import did_you_mean


def test_the_closest_names_are_offered() -> None:
    known = ["webhook.deliver", "webhook.delivery", "workspace.fetch"]
    asked = did_you_mean("webhook.delivr", known, otherwise="no idea")
    assert "'webhook.deliver' or 'webhook.delivery'" in asked
    assert "fetch" not in asked


def test_where_nothing_is_close_something_else_is_said() -> None:
    assert did_you_mean("zzz", ["webhook.deliver"], otherwise="no idea") == "no idea"
