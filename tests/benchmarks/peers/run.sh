#!/bin/sh
# Installs the shared benchmark's peers and the newer ones into a scratch folder (once), measures, prints the
# tables. Arguments go to `side_by_side.py run`; with none that is everything, more than an hour on two cores.
# `./run.sh --install` only installs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$here/../../.." && pwd)
harness=${BENCH_HARNESS:-$checkout/../shared/bench/peers}
if [ ! -f "$harness/bench.py" ]; then
  echo "the shared benchmark is not in $harness: set BENCH_HARNESS to the folder that holds its bench.py" >&2
  exit 2
fi
harness=$(cd "$harness" && pwd)
export BENCH_HARNESS="$harness" PYTHONDONTWRITEBYTECODE=1
export BENCH_WORK="${BENCH_WORK:-${TMPDIR:-/tmp}/peers-bench}"
mkdir -p "$BENCH_WORK/node"

# As the shared run.sh does it.
[ -x "$BENCH_WORK/venv/bin/python" ] || python3 -m venv "$BENCH_WORK/venv"
"$BENCH_WORK/venv/bin/pip" install -q -r "$harness/requirements.txt"
cp "$harness/package.json" "$BENCH_WORK/node/"
(cd "$BENCH_WORK/node" && npm install --no-audit --no-fund --silent)

# The newer peers ask for Python 3.12 and Django 6, so they have an environment of their own.
if [ ! -x "$BENCH_WORK/venv-more/bin/python" ]; then
  newer=${BENCH_PYTHON:-}
  for python in python3.13 python3.12 python3.14 "$HOME"/.pyenv/versions/3.1[2-9]*/bin/python; do
    if [ -z "$newer" ] && "$python" -c "" 2>/dev/null; then newer=$python; fi
  done
  if [ -z "$newer" ]; then
    echo "the newer peers need Python 3.12 or newer: set BENCH_PYTHON to one" >&2
    exit 2
  fi
  "$newer" -m venv "$BENCH_WORK/venv-more"
fi
"$BENCH_WORK/venv-more/bin/pip" install -q -r "$here/requirements.txt"

# threadmill asks for Python 3.14 and Django 6.1.
if [ ! -x "$BENCH_WORK/venv-newest/bin/python" ]; then
  newest=${BENCH_PYTHON_314:-}
  for python in python3.14 "$HOME"/.pyenv/versions/3.14*/bin/python; do
    if [ -z "$newest" ] && "$python" -c "" 2>/dev/null; then newest=$python; fi
  done
  if [ -n "$newest" ]; then
    "$newest" -m venv --without-pip "$BENCH_WORK/venv-newest"
  else
    echo "threadmill needs Python 3.14, its rows will fail: set BENCH_PYTHON_314 to one" >&2
  fi
fi
if [ -x "$BENCH_WORK/venv-newest/bin/python" ]; then
  "$BENCH_WORK/venv-more/bin/pip" --python "$BENCH_WORK/venv-newest/bin/python" install -q -r "$here/requirements-newest.txt"
fi

if [ "${1:-}" = --install ]; then exit 0; fi
if [ ! -x "${BENCH_ACW_PYTHON:-$checkout/.venv/bin/python}" ]; then
  echo "ACW's own environment is missing, its rows will fail: \`make setup\`, or set BENCH_ACW_PYTHON" >&2
fi
command -v redis-server >/dev/null || echo "redis-server is missing: the celery, dramatiq and threadmill rows will fail" >&2
"$BENCH_WORK/venv/bin/python" "$here/side_by_side.py" run "$@" || echo "some measurements failed, see above" >&2
"$BENCH_WORK/venv/bin/python" "$here/side_by_side.py" report
