"""The tables of the task market, as ``docs/operations.md`` names them."""

from __future__ import annotations

from workspaces.tasks.models.agent import Agent
from workspaces.tasks.models.records import Checkpoint, Submission, TaskEvent, Transfer
from workspaces.tasks.models.report import TaskReport
from workspaces.tasks.models.task import Task

__all__ = [
    "Agent",
    "Checkpoint",
    "Submission",
    "Task",
    "TaskEvent",
    "TaskReport",
    "Transfer",
]
