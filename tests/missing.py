"""What becomes of a test whose program this machine does not have."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def cannot_run(missing: str) -> NoReturn:
    """Skip the test; in CI, which installs everything, fail it: nothing is passed over there in silence."""
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)
