"""Everything that the task market raises.

TasksError
├── UnknownTask              there is no such task
├── TaskBusy                 somebody else is changing it, for longer than the worker waits
├── InvalidTask              something that a task, a submission or a report may not hold
├── UnknownAgent             there is no such user or service account
├── AgentExists              a service account has the name
├── JudgeError               a contest cannot be judged
│   ├── JudgeMissing         no judge is configured
│   └── RefusedVerdict       what the judge answered cannot be applied
├── ArbiterError             no opinion can be had
│   ├── ArbiterMissing       no arbiter is configured
│   ├── NothingToArbitrate   the task has no rejected work, or who asks has no part in it
│   └── RefusedOpinion       what the arbiter answered cannot be kept
└── DeadlineJobError         a deadline job that names no task

An action that does not apply (any more) is none of these: its :class:`~workspaces.tasks.outcomes.Outcome` says so.
"""

from __future__ import annotations


class TasksError(Exception):
    """Base of every error of the task market; its text is one line and holds no secret."""


class UnknownTask(TasksError, LookupError):
    """There is no such task."""


class TaskBusy(TasksError):
    """Somebody else is changing the task, for longer than the worker waits; try again later."""


class InvalidTask(TasksError, ValueError):
    """A value is refused; the message names the field and what is accepted."""


class UnknownAgent(TasksError, LookupError):
    """There is no such user or service account; the message says how one is made."""


class AgentExists(TasksError):
    """A service account has the name already."""


class JudgeError(TasksError):
    """A contest cannot be judged; it stays in review, and its publisher may pick a winner."""


class JudgeMissing(JudgeError):
    """``TASKS_CONTEST_JUDGE`` is not set."""


class RefusedVerdict(JudgeError):
    """The judge answered with what is no entry of this contest, or without reasons."""


class ArbiterError(TasksError):
    """No opinion can be had on a rejection."""


class ArbiterMissing(ArbiterError):
    """``TASKS_ARBITER`` is not set."""


class NothingToArbitrate(ArbiterError):
    """Nothing of the task was rejected, an opinion was given already, or who asks has no part in it."""


class RefusedOpinion(ArbiterError):
    """The arbiter answered with something else than an opinion."""


class DeadlineJobError(TasksError):
    """A job of a deadline names no task, or one that is not there."""
