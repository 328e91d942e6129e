"""The settings of workspaces, worktrees and attachments that environment variables change; part of `settings`."""

from __future__ import annotations

from acw import env, kinds
from acw.kinds import DURATION, DURATION_OR_ZERO, FLAG, INTERVAL

# Git

# The longest that one git command may run.
ACW_GIT_TIMEOUT = env.read("ACW_GIT_TIMEOUT", DURATION, default="120s")
# The longest that a first clone may take.
ACW_CLONE_TIMEOUT = env.read("ACW_CLONE_TIMEOUT", DURATION, default="15m")
# Fetches at once from one remote host.
ACW_GIT_HOST_LIMIT = env.read(
    "ACW_GIT_HOST_LIMIT", kinds.whole_number(minimum=1), default="4"
)
# The largest file that git may write, in bytes: bounds what a hostile remote can send.
ACW_GIT_MAX_FILE = env.read(
    "ACW_GIT_MAX_FILE", kinds.size(minimum=1024**2), default="4GiB"
)
# The longest time between tries of a remote that cannot be reached.
ACW_FETCH_BACKOFF_MAX = env.read("ACW_FETCH_BACKOFF_MAX", DURATION, default="6h")

# Worktrees

# How long a worktree stays held without a heartbeat.
ACW_WORKTREE_LEASE = env.read("ACW_WORKTREE_LEASE", DURATION, default="24h")
# How long what was pruned can be restored.
ACW_ARCHIVE_RETENTION = env.read("ACW_ARCHIVE_RETENTION", DURATION, default="2160h")
# Archives with more new data than this many bytes become a file of their own.
ACW_ARCHIVE_BUNDLE_OVER = env.read(
    "ACW_ARCHIVE_BUNDLE_OVER", kinds.size(minimum=0), default="64MiB"
)
# A worktree with more bytes to archive is kept, and told of.
ACW_ARCHIVE_MAX_SIZE = env.read(
    "ACW_ARCHIVE_MAX_SIZE", kinds.size(minimum=1024), default="2GiB"
)
# Bytes of a workspace with its worktrees beyond which its owner is told; 0: never.
ACW_WORKSPACE_SOFT_LIMIT = env.read(
    "ACW_WORKSPACE_SOFT_LIMIT", kinds.size(minimum=0), default="0"
)
# Bytes beyond which no worktree of it can be acquired; 0: no limit.
ACW_WORKSPACE_HARD_LIMIT = env.read(
    "ACW_WORKSPACE_HARD_LIMIT", kinds.size(minimum=0), default="0"
)

# Attachments

# The largest file that is accepted, in bytes.
ACW_ATTACHMENT_MAX_SIZE = env.read(
    "ACW_ATTACHMENT_MAX_SIZE", kinds.size(minimum=1), default="25MiB"
)
# The content types that are accepted, such as text/plain or image/*.
ACW_ATTACHMENT_TYPES = env.read("ACW_ATTACHMENT_TYPES", kinds.NAMES, default="*/*")

# Where their bytes are kept: a class of Django's storage API, and what it is made with.
ACW_ATTACHMENT_STORAGE = env.read(
    "ACW_ATTACHMENT_STORAGE",
    kinds.DOTTED,
    default="workspaces.storing.storage.AttachmentStorage",
)
ACW_ATTACHMENT_STORAGE_OPTIONS = env.read(
    "ACW_ATTACHMENT_STORAGE_OPTIONS", kinds.JSON_OBJECT, default="{}", secret=True
)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "attachments": {
        "BACKEND": ACW_ATTACHMENT_STORAGE,
        "OPTIONS": ACW_ATTACHMENT_STORAGE_OPTIONS,
    },
}

# Periodic runners

JOBS_WORKSPACE_FETCH_ENABLED = env.read(
    "JOBS_WORKSPACE_FETCH_ENABLED", FLAG, default="true"
)
JOBS_WORKSPACE_FETCH_INTERVAL = env.read(
    "JOBS_WORKSPACE_FETCH_INTERVAL", INTERVAL, default="5m"
)
JOBS_WORKTREE_PRUNE_ENABLED = env.read(
    "JOBS_WORKTREE_PRUNE_ENABLED", FLAG, default="true"
)
JOBS_WORKTREE_PRUNE_INTERVAL = env.read(
    "JOBS_WORKTREE_PRUNE_INTERVAL", INTERVAL, default="24h"
)
# Idle longer: removed.
JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD = env.read(
    "JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD", DURATION, default="720h"
)
# Warned so long before.
JOBS_WORKTREE_PRUNE_WARNING_LEAD = env.read(
    "JOBS_WORKTREE_PRUNE_WARNING_LEAD", DURATION, default="72h"
)
# Only what was warned of at least the warning's lead ago is removed.
JOBS_WORKTREE_PRUNE_REQUIRE_WARNING = env.read(
    "JOBS_WORKTREE_PRUNE_REQUIRE_WARNING", FLAG, default="false"
)
JOBS_WORKSPACE_RECONCILE_ENABLED = env.read(
    "JOBS_WORKSPACE_RECONCILE_ENABLED", FLAG, default="true"
)
JOBS_WORKSPACE_RECONCILE_INTERVAL = env.read(
    "JOBS_WORKSPACE_RECONCILE_INTERVAL", INTERVAL, default="1h"
)
JOBS_WORKSPACE_MAINTENANCE_ENABLED = env.read(
    "JOBS_WORKSPACE_MAINTENANCE_ENABLED", FLAG, default="true"
)
JOBS_WORKSPACE_MAINTENANCE_INTERVAL = env.read(
    "JOBS_WORKSPACE_MAINTENANCE_INTERVAL", INTERVAL, default="24h"
)
JOBS_ATTACHMENT_CLEANUP_ENABLED = env.read(
    "JOBS_ATTACHMENT_CLEANUP_ENABLED", FLAG, default="true"
)
JOBS_ATTACHMENT_CLEANUP_INTERVAL = env.read(
    "JOBS_ATTACHMENT_CLEANUP_INTERVAL", INTERVAL, default="24h"
)
# How long attachments without a conversation are kept.
JOBS_ATTACHMENT_CLEANUP_RETENTION = env.read(
    "JOBS_ATTACHMENT_CLEANUP_RETENTION", DURATION_OR_ZERO, default="720h"
)
