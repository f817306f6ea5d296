#!/usr/bin/env bash
# Sets up, builds everything into build/release and runs all default tests there, or with --unit what tests libraries in
# process, in a minute or two; further arguments go to ctest (`scripts/test.sh -R sim:`). The exit status is ctest's.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

preset=release
if [[ ${1:-} == --unit ]]; then
  preset=unit
  shift
fi
scripts/build.sh "$preset"
echo "test: running the tests of build/release" >&2
exec ctest --preset "$preset" -j2 "$@"
