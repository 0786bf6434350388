#!/bin/sh
# Installs a wheel into an empty environment elsewhere, and runs small commands from it.
# Usage: tests/installed.sh WHEEL, from the root of the clone
set -eu
wheel=$(realpath "$1") constraints=$(realpath constraints.txt) python=$(realpath .venv/bin/python)
where=$(mktemp -d)
trap 'rm -rf "$where"' EXIT
trap 'exit 1' INT TERM
cd "$where"
unset PYTHONPATH
export NUMBA_CACHE_DIR="$where/numba"

"$python" -m venv venv
venv/bin/python -m pip install -qq --disable-pip-version-check -c "$constraints" "$wheel[plots,io]"
venv/bin/python -c 'import metrack, sys; assert metrack.__file__.startswith(sys.prefix), metrack'
venv/bin/metrack --version
venv/bin/metrack demo --pairs 60 --out demo > tables
for name in figure.png report.html results.json; do test -s "demo/$name"; done

printf 'x_1,x_2,z_1,z_2,y\n0,1,0,5,same\n3,1,0,1,different\n1,2,1,0,same\n' > pairs.csv
venv/bin/metrack track pairs.csv --out state | tee said
grep -q '^state: 3 pairs learned' said
venv/bin/metrack inspect state --html page.html > tables
test -s page.html
echo "The wheel works."
