from __future__ import annotations

import json

from django.utils import timezone

from workspaces.tasks.outcomes import Outcome, Refused
from workspaces.tasks.states import Action, Reason, Status


def test_what_applied_says_so_and_what_it_made():
    outcome = Outcome(
        ok=True, task_id=7, action=Action.SUBMIT, status=Status.REVIEWING, created_id=3
    )
    assert json.loads(json.dumps(outcome.as_dict())) == {
        "ok": True,
        "task_id": 7,
        "action": "submit",
        "status": "reviewing",
        "id": 3,
    }


def test_what_did_not_says_why_in_words_and_for_programs():
    outcome = Outcome(
        ok=False,
        task_id=7,
        action=Action.TAKE,
        status=Status.HELD,
        reason="it is held",
        code=Reason.WRONG_STATUS,
        due=timezone.now(),
    )
    assert json.loads(json.dumps(outcome.as_dict())) == {
        "ok": False,
        "reason": "it is held",
        "code": "wrong_status",
        "task_id": 7,
        "action": "take",
        "status": "held",
    }


def test_a_refusal_carries_what_the_outcome_says():
    due = timezone.now()
    refused = Refused(Reason.NOT_DUE, "not yet", due=due)
    assert (refused.code, refused.reason, refused.due) == (
        Reason.NOT_DUE,
        "not yet",
        due,
    )
    assert str(refused) == "not yet"
