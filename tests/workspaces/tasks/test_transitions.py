from __future__ import annotations

from workspaces.tasks.states import Action, Role, Status
from workspaces.tasks.transition import Transition
from workspaces.tasks.transitions import TRANSITIONS

# Written by hand from the documents: what is done, from where, by whom, and where it leads.
EXPECTED = """
publish             -          anyone      open
take                open       anyone      held       direct   before open_until
use_worktree        held       holder      held                before hold_until
checkpoint          held       holder      held                before checkpoint_due_at,hold_until
submit              held       holder      reviewing           before hold_until
submit              open       contestant  open       contest  before open_until
give_back           held       holder      open
give_back           held       holder      closed
offer_transfer      held       holder      held                before hold_until
accept_transfer     held       offered     held                before transfer_until,hold_until
decline_transfer    held       offered     held                before transfer_until
withdraw_transfer   held       holder      held                before transfer_until
accept              reviewing  publisher   accepted   direct
reject              reviewing  publisher   held       direct   before review_until
reject              reviewing  publisher   rejected   direct   before review_until
reject              reviewing  publisher   rejected   contest
pick_winner         reviewing  publisher   accepted   contest
cancel              open       publisher   cancelled
cancel              held       publisher   cancelled
cancel              reviewing  publisher   cancelled  direct   before review_until
cancel              reviewing  publisher   cancelled  contest
reopen              rejected   publisher   open
reopen              expired    publisher   open
reopen              closed     publisher   open
reopen              cancelled  publisher   open
open_expire         open       worker      expired    direct   after open_until
hold_timeout        held       worker      open                after hold_until
hold_timeout        held       worker      closed              after hold_until
checkpoint_warn     held       worker      held                after checkpoint_warn_at before checkpoint_due_at
checkpoint_miss     held       worker      held                after checkpoint_due_at
checkpoint_miss     held       worker      open                after checkpoint_due_at
checkpoint_miss     held       worker      closed              after checkpoint_due_at
contest_close       open       worker      reviewing  contest  after open_until
contest_close       open       worker      expired    contest  after open_until
transfer_expire     held       worker      held                after transfer_until
review_warn         reviewing  worker      reviewing           after review_warn_at
review_warn         reviewing  worker      reviewing           after review_warn_at
review_auto_accept  reviewing  worker      accepted            after review_until
"""


def written(row: Transition) -> str:
    words = [row.action, row.source or "-", row.by, row.target, row.template]
    if row.after is not None:
        words.append(f"after {row.after}")
    if row.before:
        words.append(f"before {','.join(row.before)}")
    return " ".join(str(word) for word in words if word is not None)


def test_the_table_says_what_the_documents_say():
    expected = [" ".join(line.split()) for line in EXPECTED.splitlines() if line]
    assert sorted(map(written, TRANSITIONS)) == sorted(expected)


def test_of_the_rows_that_may_fit_the_last_has_no_condition():
    last = {(row.action, row.source, row.template): row for row in TRANSITIONS}
    assert [row for row in last.values() if row.when is not None] == []


def test_every_action_is_somewhere_in_the_table_and_every_status_is_reached():
    assert {row.action for row in TRANSITIONS} == set(Action)
    assert {row.target for row in TRANSITIONS} == set(Status)
    assert {row.by for row in TRANSITIONS} == set(Role)


def test_only_accepted_is_an_end_for_good():
    left = {row.source for row in TRANSITIONS}
    assert set(Status) - left == {Status.ACCEPTED}
