#!/usr/bin/env bash
# The main job on this machine: sets up, builds the tools into build/release, then measures this machine, plans,
# predicts and really synchronises VGG19's gradients between four ranks, and lays prediction and measurement side
# by side. Results go to build/demo. Exit status 0 only if every synchronised gradient verified.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

scripts/build.sh demo
python=$(scripts/find_python.sh)
exec "$python" scripts/demo.py --tools build/release/bin --output build/demo "$@"
