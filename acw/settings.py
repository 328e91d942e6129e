"""Django's settings, read from environment variables here and, for git and what lies on disks, in `workspace_settings`.

Each setting that stands for a variable has the variable's name. What no variable
changes is in `base_settings`.
"""

from __future__ import annotations

import datetime as dt
import socket

from django.core.management.utils import get_random_secret_key

from acw import consistency, database, env, kinds, local_secrets, logs
from acw.base_settings import *  # noqa: F403 - they are settings of this module too
from acw.base_settings import BASE_DIR
from acw.kinds import DURATION, DURATION_OR_ZERO, FLAG, INTERVAL
from jobs.concurrency import MOST_THREADS
from notify import encryption
from workspaces.tasks import texts

env.load_file(BASE_DIR)

# What and where

# What the embedded mode keeps: the database's files and generated secrets.
ACW_STATE_DIR = env.read("ACW_STATE_DIR", kinds.path(below=BASE_DIR), default=".acw")
# Unset: ACW starts a PostgreSQL server of its own, the embedded mode.
DATABASES = {
    "default": env.read(
        "DATABASE_URL",
        database.kind(embedded_in=ACW_STATE_DIR / "postgres"),
        secret=True,
    )
}
EMBEDDED = database.is_embedded(DATABASES["default"])
# Clones, worktrees and attachments of this host.
ACW_DATA_DIR = env.read("ACW_DATA_DIR", kinds.path(below=BASE_DIR), default=".acw/data")
# This host's name: what lies on its disk is worked on only by it.
ACW_HOST = env.read("ACW_HOST", kinds.HOST, default=socket.gethostname())

# Web

# Django's debug pages; never in production.
DEBUG = env.read("DEBUG", FLAG, default="false")
# Signs sessions. Required; the embedded mode generates one.
SECRET_KEY = env.read(
    "SECRET_KEY",
    kinds.TEXT,
    secret=True,
    required=not EMBEDDED,
) or local_secrets.kept_secret(ACW_STATE_DIR / "secret_key", make=get_random_secret_key)
ALLOWED_HOSTS = env.read(
    "ALLOWED_HOSTS",
    kinds.NAMES,
    default="localhost,127.0.0.1,[::1]" if EMBEDDED else "",
)
# Origins, with https://, that may post forms.
CSRF_TRUSTED_ORIGINS = env.read("CSRF_TRUSTED_ORIGINS", kinds.NAMES)
# Reached over HTTPS only: redirects, secure cookies, HSTS.
ACW_HTTPS = env.read(
    "ACW_HTTPS", FLAG, default="false" if EMBEDDED or DEBUG else "true"
)
# Believe X-Forwarded-Proto, which a proxy in front must always set.
ACW_TRUST_PROXY_SSL = env.read("ACW_TRUST_PROXY_SSL", FLAG, default="false")

# ACW

# For secrets at rest: the first encrypts, all decrypt. Required likewise.
ACW_ENCRYPTION_KEYS = env.read(
    "ACW_ENCRYPTION_KEYS",
    kinds.FERNET_KEYS,
    secret=True,
    required=not EMBEDDED,
) or [
    local_secrets.kept_secret(ACW_STATE_DIR / "encryption_key", make=encryption.new_key)
]
ACW_LOG_FORMAT = env.read(
    "ACW_LOG_FORMAT", kinds.choice("text", "json"), default="text"
)
ACW_LOG_LEVEL = env.read(
    "ACW_LOG_LEVEL",
    kinds.choice("debug", "info", "warning", "error", "critical"),
    default="info",
)
# How git may reach a remote.
ACW_GIT_PROTOCOLS = env.read(
    "ACW_GIT_PROTOCOLS",
    kinds.subset("https", "http", "ssh", "git", "file"),
    default="https,ssh,file" if EMBEDDED else "https,ssh",
)

# The queue

# Off: `runjobs` starts neither workers nor runners.
JOBS_ENABLED = env.read("JOBS_ENABLED", FLAG, default="true")
# Threads that run jobs.
JOBS_WORKERS = env.read(
    "JOBS_WORKERS", kinds.whole_number(minimum=1, maximum=MOST_THREADS), default="2"
)
# How long running handlers may finish after SIGTERM.
JOBS_SHUTDOWN_GRACE = env.read("JOBS_SHUTDOWN_GRACE", DURATION_OR_ZERO, default="30s")
# How long a handler may go on past its timeout, before its job is failed without it.
JOBS_TIMEOUT_GRACE = env.read("JOBS_TIMEOUT_GRACE", DURATION_OR_ZERO, default="10s")
# How often the table is looked at when no notification comes.
JOBS_POLL_INTERVAL = env.read("JOBS_POLL_INTERVAL", INTERVAL, default="1s")
# Before the first retry; then doubled.
JOBS_BACKOFF_BASE = env.read("JOBS_BACKOFF_BASE", DURATION, default="30s")
# The longest wait before a retry.
JOBS_BACKOFF_MAX = env.read("JOBS_BACKOFF_MAX", DURATION, default="1h")
# The largest payload of a job.
# As JSONB it takes up to six times as much, and the table takes up to 64 MB.
JOBS_MAX_PAYLOAD = env.read(
    "JOBS_MAX_PAYLOAD",
    kinds.size(minimum=16 * 1024, maximum=8 * 1024**2),
    default="262144",
)
# How long a job waits for a worker that knows its type.
JOBS_UNKNOWN_TYPE_GRACE = env.read(
    "JOBS_UNKNOWN_TYPE_GRACE", DURATION_OR_ZERO, default="10m"
)

# How long a side thread of a worker may leave no sign of progress.
JOBS_STALL_AFTER = env.read(
    "JOBS_STALL_AFTER", kinds.at_most(INTERVAL, dt.timedelta(hours=24)), default="60s"
)

# Periodic runners

JOBS_JOB_REAPER_ENABLED = env.read("JOBS_JOB_REAPER_ENABLED", FLAG, default="true")
JOBS_JOB_REAPER_INTERVAL = env.read("JOBS_JOB_REAPER_INTERVAL", INTERVAL, default="1m")
# A lease not extended ends.
JOBS_JOB_REAPER_LEASE_TIMEOUT = env.read(
    "JOBS_JOB_REAPER_LEASE_TIMEOUT", DURATION, default="5m"
)
JOBS_JOB_PURGE_ENABLED = env.read("JOBS_JOB_PURGE_ENABLED", FLAG, default="true")
JOBS_JOB_PURGE_INTERVAL = env.read("JOBS_JOB_PURGE_INTERVAL", INTERVAL, default="24h")
# How long completed and cancelled jobs are kept.
JOBS_JOB_PURGE_COMPLETED_RETENTION = env.read(
    "JOBS_JOB_PURGE_COMPLETED_RETENTION", DURATION_OR_ZERO, default="168h"
)
# How long dead jobs are kept.
JOBS_JOB_PURGE_DEAD_RETENTION = env.read(
    "JOBS_JOB_PURGE_DEAD_RETENTION", DURATION_OR_ZERO, default="720h"
)

JOBS_TASK_REPORT_ENABLED = env.read("JOBS_TASK_REPORT_ENABLED", FLAG, default="true")
JOBS_TASK_REPORT_INTERVAL = env.read(
    "JOBS_TASK_REPORT_INTERVAL", INTERVAL, default="24h"
)
JOBS_TASK_RECONCILE_ENABLED = env.read(
    "JOBS_TASK_RECONCILE_ENABLED", FLAG, default="true"
)
JOBS_TASK_RECONCILE_INTERVAL = env.read(
    "JOBS_TASK_RECONCILE_INTERVAL", INTERVAL, default="15m"
)

# Tasks

# Who `manage.py task` acts as, where it is not told.
ACW_AGENT = env.read("ACW_AGENT", kinds.TEXT)
# How long a task can be taken, or a contest entered.
TASKS_OPEN_FOR = env.read(
    "TASKS_OPEN_FOR", kinds.at_most(DURATION, texts.LONGEST), default="168h"
)
# How long an agent may hold a task.
TASKS_HOLD_FOR = env.read(
    "TASKS_HOLD_FOR", kinds.at_most(DURATION, texts.LONGEST), default="24h"
)
# How often its holder has to report; 0: never.
TASKS_CHECKPOINT_EVERY = env.read(
    "TASKS_CHECKPOINT_EVERY",
    kinds.at_most(DURATION_OR_ZERO, texts.LONGEST),
    default="0s",
)
# The missed checkpoint in a row that costs the task.
TASKS_FINAL_MISS = env.read(
    "TASKS_FINAL_MISS",
    kinds.whole_number(minimum=1, maximum=texts.COUNT_LIMIT),
    default="2",
)
# How long before a checkpoint its holder is warned.
TASKS_CHECKPOINT_WARNING_LEAD = env.read(
    "TASKS_CHECKPOINT_WARNING_LEAD", DURATION, default="15m"
)
# How long its publisher may review a task.
TASKS_REVIEW_FOR = env.read(
    "TASKS_REVIEW_FOR", kinds.at_most(DURATION, texts.LONGEST), default="72h"
)
# How long before that ends its publisher is warned.
TASKS_REVIEW_WARNING_LEAD = env.read(
    "TASKS_REVIEW_WARNING_LEAD", DURATION, default="24h"
)
# How long a transfer can be answered.
TASKS_TRANSFER_FOR = env.read("TASKS_TRANSFER_FOR", DURATION, default="1h")
# How often a task is offered again that was given back.
TASKS_RETURNS_ALLOWED = env.read(
    "TASKS_RETURNS_ALLOWED",
    kinds.whole_number(minimum=0, maximum=texts.COUNT_LIMIT),
    default="3",
)
# The callable that chooses the winners of contests.
TASKS_CONTEST_JUDGE = env.read("TASKS_CONTEST_JUDGE", kinds.TEXT)
# The callable that gives opinions on rejections.
TASKS_ARBITER = env.read("TASKS_ARBITER", kinds.TEXT)
# How long either may take.
TASKS_JUDGE_TIMEOUT = env.read("TASKS_JUDGE_TIMEOUT", DURATION, default="10m")

# Webhooks

# Off: no webhook job is made at all.
NOTIFY_WEBHOOK_ENABLED = env.read("NOTIFY_WEBHOOK_ENABLED", FLAG, default="false")
# The first endpoint, made by `migrate`.
NOTIFY_WEBHOOK_URL = env.read("NOTIFY_WEBHOOK_URL", kinds.WEB_URL, secret=True)
# The first endpoint's signing secret.
NOTIFY_WEBHOOK_SECRET = env.read(
    "NOTIFY_WEBHOOK_SECRET", kinds.WEBHOOK_SECRET, secret=True
)
# Bounds one whole exchange; an endpoint may have its own.
NOTIFY_WEBHOOK_TIMEOUT = env.read("NOTIFY_WEBHOOK_TIMEOUT", DURATION, default="10s")
# The first endpoint's topics.
NOTIFY_WEBHOOK_TOPICS = env.read("NOTIFY_WEBHOOK_TOPICS", kinds.NAMES)
# Private networks that webhooks may reach.
NOTIFY_WEBHOOK_ALLOW_NETWORKS = env.read(
    "NOTIFY_WEBHOOK_ALLOW_NETWORKS",
    kinds.NETWORKS,
    default="127.0.0.0/8,::1/128" if EMBEDDED else "",
)
# A file of certificates to trust in the place of certifi's.
NOTIFY_WEBHOOK_CA_BUNDLE = env.read("NOTIFY_WEBHOOK_CA_BUNDLE", kinds.TEXT)
# The answers of 4xx that ask for another try.
NOTIFY_WEBHOOK_RETRY_STATUSES = env.read(
    "NOTIFY_WEBHOOK_RETRY_STATUSES", kinds.STATUSES, default="408,425,429"
)
# Failures in a row, over several events, that open an endpoint's breaker.
NOTIFY_WEBHOOK_BREAKER_FAILURES = env.read(
    "NOTIFY_WEBHOOK_BREAKER_FAILURES", kinds.whole_number(minimum=2), default="5"
)
# From the opening to the first try, doubled with each that fails.
NOTIFY_WEBHOOK_BREAKER_WAIT = env.read(
    "NOTIFY_WEBHOOK_BREAKER_WAIT", DURATION, default="30s"
)
# The longest time between tries.
NOTIFY_WEBHOOK_BREAKER_MAX_WAIT = env.read(
    "NOTIFY_WEBHOOK_BREAKER_MAX_WAIT", DURATION, default="15m"
)
# An endpoint that fails for this long is disabled.
NOTIFY_WEBHOOK_DISABLE_AFTER = env.read(
    "NOTIFY_WEBHOOK_DISABLE_AFTER", DURATION, default="120h"
)
# Dead letters of one endpoint within this time are one notification.
NOTIFY_WEBHOOK_DEAD_LETTER_WINDOW = env.read(
    "NOTIFY_WEBHOOK_DEAD_LETTER_WINDOW", DURATION, default="15m"
)
# Deliveries tried.
NOTIFY_WEBHOOK_MAX_ATTEMPTS = env.read(
    "NOTIFY_WEBHOOK_MAX_ATTEMPTS", kinds.whole_number(minimum=1), default="6"
)

from acw.workspace_settings import *  # noqa: E402, F403 - reads what load_file has loaded

consistency.check(globals())

# What follows from them

LOGGING = logs.config(log_format=ACW_LOG_FORMAT, level=ACW_LOG_LEVEL)

SECURE_SSL_REDIRECT = ACW_HTTPS
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = ACW_HTTPS
SECURE_HSTS_SECONDS = 30 * 24 * 3600 if ACW_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = ACW_HTTPS
if ACW_TRUST_PROXY_SSL:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
