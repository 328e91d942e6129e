from __future__ import annotations

import pytest
from django.core.management import CommandError

from tests.workspaces.factories import UserFactory
from workspaces.owners import find_owner

pytestmark = pytest.mark.django_db


def test_a_user_by_name_or_nobody():
    ada = UserFactory(username="ada")
    assert find_owner("ada") == ada
    assert find_owner(None) is None


def test_a_name_that_nobody_has():
    with pytest.raises(CommandError, match="--owner: there is no user 'ghost'"):
        find_owner("ghost")


@pytest.mark.parametrize("name", ["\udcff", "a\x00b", ""])
def test_a_name_that_nobody_can_have(name: str):
    with pytest.raises(CommandError, match="--owner: there is no user"):
        find_owner(name)
