#!/usr/bin/env bash
# Sets up, builds everything into build/release and runs all default tests there; further arguments go to
# ctest (`scripts/test.sh -R sim:`). The exit status is ctest's.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

scripts/build.sh release
echo "test: running the tests of build/release" >&2
exec ctest --preset release -j2 "$@"
