from __future__ import annotations

import pytest

from notify.recipients import admins, owner_or_admins
from tests.notify.factories import AdminFactory, UserFactory

pytestmark = pytest.mark.django_db


def test_admins_are_the_active_superusers():
    UserFactory(is_staff=True)
    AdminFactory(is_active=False)
    expected = [AdminFactory(), AdminFactory()]

    assert admins() == expected


def test_an_owner_is_told_alone():
    AdminFactory()
    owner = UserFactory()

    assert owner_or_admins(owner) == [owner]


def test_without_an_owner_every_admin_is_told():
    expected = [AdminFactory(), AdminFactory()]

    assert owner_or_admins(None) == expected


def test_an_owner_who_can_no_longer_log_in_counts_as_none():
    admin = AdminFactory()

    assert owner_or_admins(UserFactory(is_active=False)) == [admin]
