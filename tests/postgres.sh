#!/bin/sh
# Runs a command beside a PostgreSQL of its own, on loopback and in a temporary folder, which it finds
# as METRACK_TEST_DATABASE and which is gone after; installs Debian's where there is none.
# Usage: tests/postgres.sh COMMAND ..., from the root of the clone
set -eu
if ! command -v postgres > /dev/null && ! ls /usr/lib/postgresql/*/bin/postgres > /dev/null 2>&1; then
  echo "There is no PostgreSQL: installing Debian's, with apt-get ..."
  as_root=$([ "$(id -u)" = 0 ] || echo sudo)
  $as_root apt-get -qq update
  # Without a cluster of the system's own, which nobody asked for.
  $as_root mkdir -p /etc/postgresql-common
  echo "create_main_cluster = false" | $as_root tee /etc/postgresql-common/createcluster.conf > /dev/null
  $as_root apt-get -qq install --yes --no-install-recommends postgresql > /dev/null
fi
exec .venv/bin/python -m tests.postgres.cluster "$@"
