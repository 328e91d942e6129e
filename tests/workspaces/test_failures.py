from __future__ import annotations

from workspaces.failures import Failure
from workspaces.models import Workspace


def test_every_class_fits_the_column_of_the_row():
    longest = Workspace._meta.get_field("fetch_problem").max_length
    assert longest is not None
    assert all(len(failure) <= longest for failure in Failure)
