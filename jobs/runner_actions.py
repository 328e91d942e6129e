"""What an operator does to the periodic runners: have one tick now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.db import connection, transaction
from django.db.models.functions import Now

from jobs import registry, ticks
from jobs.action_result import Result, Skip
from jobs.heartbeat import alive_within
from jobs.models import RunnerState, WorkerProcess
from jobs.process import worker_name
from jobs.registry import Runner, Summary
from jobs.verbs import audit

RUN_NOW = "runner.run_now"


def run_now(names: Iterable[str], *, actor: str) -> Result:
    """Make the next tick of each due now: a worker runs it within seconds.

    Skipped are those whose tick is under way, and those that no worker would run.
    """
    result = Result(participle="made due now")
    for name in names:
        reason = _run_now(name, actor=actor)
        if reason is None:
            result.done.append(name)
        else:
            result.skipped.append(Skip(target=name, reason=reason))
    return result


def _run_now(name: str, *, actor: str) -> str | None:
    """Do it, or return why not."""
    runner = registry.runners().get(name)
    if runner is None:
        return f"this code has no runner {name}"
    if not runner.enabled:
        return f"JOBS_{name.upper()}_ENABLED is false"
    with transaction.atomic():
        state = RunnerState.objects.select_for_update().filter(pk=name).first()
        if state is None:
            return "no worker has started since it was added"
        if _under_way(state):
            return f"its tick is under way in {state.last_worker}"
        RunnerState.objects.filter(pk=name).update(next_run_at=Now())
        was = {"next_run_at": state.next_run_at.isoformat()}
        audit(RUN_NOW, f"runner:{name}", actor=actor, data=was)
    return None


def _under_way(state: RunnerState) -> bool:
    """A tick whose worker was lost is not: its outcome stays ``running`` until the next."""
    return (
        state.last_outcome == RunnerState.Outcome.RUNNING
        and WorkerProcess.objects.alive(alive_within())
        .filter(name=state.last_worker)
        .exists()
    )


def foretell(runner: Runner) -> Iterator[str]:
    """What one tick would do now, line by line; the database lets nothing be written meanwhile.

    Raises LookupError where the runner cannot say, and what its function raises.
    """
    if runner.dry_run is None:
        raise LookupError(f"the runner {runner.name} has no dry run")
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
        try:
            yield from runner.dry_run()
        finally:
            # Also what was set for this transaction ends with it, where it is part of another.
            transaction.set_rollback(True)


def run_here(runner: Runner, *, actor: str) -> Summary:
    """Run one tick in this thread, also where it is switched off; return what it did.

    Raises what the runner raises.
    """
    with transaction.atomic():
        facts = {"in_foreground": True}
        audit(RUN_NOW, f"runner:{runner.name}", actor=actor, data=facts)
    return ticks.run_now(runner, worker=worker_name())
