#!/usr/bin/env bash
# The main job on this machine: sets up, builds the tools into build/release, then measures this machine, plans,
# predicts and really synchronises VGG19's gradients between four ranks, and lays prediction and measurement side
# by side. Results go to build/demo. Exit status 0 only if every synchronised gradient verified. Works from any folder;
# files named in the arguments, which go to demo.py, are seen from there.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/build.sh" demo
python=$("$root/scripts/find_python.sh")
exec "$python" "$root/scripts/demo.py" "$@"
