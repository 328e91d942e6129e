from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.asserts import assertContains, assertNotContains

from jobs.enqueue import enqueue
from notify.models import AuditEntry, WebhookRecovery
from tests.notify.admin.pages import client_with
from tests.notify.factories import EndpointFactory, RecoveryFactory

pytestmark = pytest.mark.django_db
LIST = "/admin/notify/webhookrecovery/"


def page(recovery: WebhookRecovery, verb: str = "change") -> str:
    return reverse(f"admin:notify_webhookrecovery_{verb}", args=[recovery.pk])


def running(**values) -> WebhookRecovery:
    """One that has its job."""
    recovery: WebhookRecovery = RecoveryFactory(**values)
    job = enqueue("webhook.recover", {"recovery_id": recovery.pk})
    WebhookRecovery.objects.filter(pk=recovery.pk).update(job_id=job.pk)
    return recovery


def test_the_list_says_how_far_each_has_come_and_what_it_waits_for(admin: Client):
    running(endpoint=EndpointFactory(name="chat"), counted=400, resent=100, skipped=20)
    running(reason="the endpoint is disabled")
    RecoveryFactory(state="finished", counted=7, resent=7)

    shown = admin.get(LIST)

    assertContains(shown, '<progress max="400" value="120"></progress>')
    assertContains(shown, "100 of 400, 20 skipped")
    assertContains(shown, "about 4m 40s at 60 a minute")
    assertContains(shown, ">waiting</span>")
    assertContains(shown, "the endpoint is disabled")
    assertContains(shown, ">finished</span>")


def test_it_is_paused_resumed_and_cancelled_by_its_buttons(admin: Client):
    recovery = running()
    assertNotContains(admin.get(page(recovery)), ">Resume</button>")

    for verb, button, state in (
        ("pause", "Pause", "paused"),
        ("resume", "Resume", "running"),
        ("cancel", "Cancel", "cancelled"),
    ):
        assertContains(admin.get(page(recovery)), f">{button}</button>")
        told = admin.post(page(recovery, verb), follow=True)
        assertContains(told, f"1 {verb.removesuffix('e').removesuffix('l')}")
        recovery.refresh_from_db()
        assert recovery.state == state

    assert AuditEntry.objects.filter(actor="alice").count() == 3


def test_one_whose_job_is_gone_says_so_and_can_be_resumed(admin: Client):
    recovery = RecoveryFactory()

    shown = admin.get(page(recovery))

    assertContains(shown, "its job is gone: resume it")
    assertContains(shown, ">Resume</button>")


def test_looking_and_steering_are_different_permissions():
    recovery = running()
    viewer = client_with("view_webhookrecovery")
    assertNotContains(viewer.get(page(recovery)), ">Pause</button>")
    assert viewer.post(page(recovery, "pause")).status_code == 403

    steerer = client_with("view_webhookrecovery", "resend_webhookdelivery")

    assert steerer.get(page(recovery, "pause")).status_code == 405
    assert steerer.post(page(recovery, "pause")).status_code == 302
    assert steerer.post(page(recovery), {"state": "running"}).status_code == 403
