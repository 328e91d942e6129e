"""What is told about tasks. Each goes to the people behind the agents whom the transition's row names."""

from __future__ import annotations

from notify.topics import define

PUBLISHED = define(
    "task.published",
    title="Task published",
    description="A task can be taken, or a contest entered. Sent to webhooks only: nobody is concerned yet.",
)
TAKEN = define(
    "task.taken",
    title="Task taken",
    description="An agent holds the task. Told to its publisher.",
)
CHECKPOINT_WARNING = define(
    "task.checkpoint_warning",
    title="Checkpoint is due soon",
    description="The holder has to report progress before the time named. Told to the holder, once for each checkpoint.",
)
CHECKPOINT_MISSED = define(
    "task.checkpoint_missed",
    title="Checkpoint missed",
    description="The time for a checkpoint passed without one, and the holder keeps the task. Told to holder and publisher.",
)
SUBMITTED = define(
    "task.submitted",
    title="Task submitted for review",
    description="Work was handed in, or a contest has closed with entries: its publisher has to decide. Told to the publisher.",
)
REVIEW_WARNING = define(
    "task.review_warning",
    title="Review is due soon",
    description="What was handed in is accepted on the publisher's silence at the time named. Told to the publisher, once.",
)
ACCEPTED = define(
    "task.accepted",
    title="Task accepted",
    description="The work was accepted, or a contest has its winner. Told to everyone who handed something in, and to the publisher where somebody else has decided.",
)
REJECTED = define(
    "task.rejected",
    title="Task rejected",
    description="The work was rejected, with a reason; the holder goes on where time is left. Told to who handed it in, and to the publisher where an operator did it.",
)
RETURNED = define(
    "task.returned",
    title="Task given back",
    description="Its holder has lost it or let go of it, and it can be taken again. Told to publisher and former holder.",
)
CLOSED = define(
    "task.closed",
    title="Task closed",
    description="It was given back too often, and is offered no more. Told to publisher and former holder.",
)
EXPIRED = define(
    "task.expired",
    title="Task expired",
    description="Nobody took it, or nobody entered the contest, in time. Told to the publisher.",
)
CANCELLED = define(
    "task.cancelled",
    title="Task cancelled",
    description="Its publisher has withdrawn it. Told to its holder, to those who entered the contest, and to the publisher where an operator did it.",
)
TRANSFER_OFFERED = define(
    "task.transfer_offered",
    title="Task offered to you",
    description="The holder wants to hand the task over; nothing changes until it is accepted. Told to the agent it is offered to.",
)
TRANSFER_ACCEPTED = define(
    "task.transfer_accepted",
    title="Transfer accepted",
    description="The task has another holder. Told to the former holder and the publisher.",
)
TRANSFER_ENDED = define(
    "task.transfer_ended",
    title="Transfer came to nothing",
    description="It was declined, withdrawn or not answered in time: the holder keeps the task. Told to the other side, or to whom it was offered where the task went elsewhere.",
)
OPINION = define(
    "task.opinion",
    title="Opinion on a rejected task",
    description="The arbiter that was asked about a rejection has answered; it decides nothing. Told to both sides.",
)
REPORT = define(
    "task.report",
    title="Tasks: daily report",
    description="What became of tasks since the last report, and what waits for whom. Told to every admin.",
)
