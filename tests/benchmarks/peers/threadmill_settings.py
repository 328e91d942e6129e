"""Django settings of threadmill, which needs a newer Django than the others."""

from __future__ import annotations

import os

SECRET_KEY = "bench"
USE_TZ = True
INSTALLED_APPS = ["threadmill"]
TASKS = {
    "default": {
        "BACKEND": "threadmill.backends.redis.RedisTaskBackend",
        "REDIS_URL": os.environ["BENCH_REDIS"] + "/2",
    }
}
