#!/usr/bin/env bash
# Lays predictions beside measurements on networks of known speed, made of network namespaces on this machine: sets up,
# builds the tools into build/release, profiles, predicts and measures. Results go to build/validation. All arguments
# go to validate.py; `validate.sh --help` lists them.
#   scripts/validate.sh [--quick] [--json FILE] [--loopback] [--only CONDITIONS] [--resume]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/build.sh" demo
python=$("$root/scripts/find_python.sh")
exec "$python" -B "$root/scripts/validate.py" "$@"
