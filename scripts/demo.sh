#!/usr/bin/env bash
# Runs the main job on this machine: sets up, builds the tools into build/release, then measures this machine, plans, synchronises
# VGG19's gradients between four ranks, and compares predicted with measured times. Results go to build/demo. Exit status 0 only if
# every synchronised gradient verified. Arguments go to demo.py; files in them are relative to the current folder.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/build.sh" demo
python=$("$root/scripts/find_python.sh")
exec "$python" "$root/scripts/demo.py" "$@"
