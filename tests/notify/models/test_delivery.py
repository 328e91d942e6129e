from __future__ import annotations

import pytest

from jobs.enqueue import enqueue
from notify.models import WebhookDelivery
from notify.webhooks import JOB_TYPE, DeliverPayload

pytestmark = pytest.mark.django_db


def test_deliveries_are_the_jobs_that_deliver():
    enqueue("open_expire", ref_id=1)
    job = enqueue(JOB_TYPE, DeliverPayload(endpoint_id=1, topic="a.b", body="{}"))

    assert [each.pk for each in WebhookDelivery.objects.all()] == [job.pk]
