#!/bin/sh
# Drives the pages of metrack serve in chromium; installs Debian's where there is none.
# Usage: tests/browser.sh, from the root of the clone
set -eu
if ! command -v chromium > /dev/null; then
  echo "There is no chromium: installing Debian's, with apt-get ..."
  as_root=$([ "$(id -u)" = 0 ] || echo sudo)
  $as_root apt-get -qq update
  $as_root apt-get -qq install --yes --no-install-recommends chromium fonts-dejavu-core > /dev/null
fi
METRACK_BROWSER=$(command -v chromium) .venv/bin/pytest tests/browser
