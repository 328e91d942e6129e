from __future__ import annotations

import pytest
from django.core.management import CommandError

from jobs.models import Status
from tests.notify.commands.calling import webhook
from tests.notify.factories import EndpointFactory, delivery_to

pytestmark = pytest.mark.django_db


def test_a_dead_delivery_is_resent_by_its_id():
    delivery = delivery_to(EndpointFactory(), dead=True)

    assert webhook("resend", str(delivery.pk)) == "1 resent\n"

    delivery.refresh_from_db()
    assert delivery.status == Status.PENDING


def test_what_cannot_be_resent_is_refused_with_the_reason():
    delivery = delivery_to(EndpointFactory(), running=True)

    with pytest.raises(CommandError, match="only dead and completed jobs"):
        webhook("resend", str(delivery.pk))


def test_what_is_no_id_is_a_wrong_call():
    with pytest.raises(CommandError, match="a UUID, got 'x'"):
        webhook("resend", "x")
