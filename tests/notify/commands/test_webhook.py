from __future__ import annotations

import pytest
from django.core.management import CommandError

from tests.notify.commands.calling import webhook


def test_a_verb_that_there_is_not_is_refused_with_those_that_there_are():
    with pytest.raises(CommandError, match=r"invalid choice: 'lst' .*list"):
        webhook("lst")
