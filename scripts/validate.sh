#!/usr/bin/env bash
# Builds the tools into build/release, and compares predictions with measurements on networks of known speed. Results go to
# build/validation. All arguments go to validate.py, whose --help lists the experiments.
#   scripts/validate.sh EXPERIMENT [OPTIONS]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/build.sh" demo
python=$("$root/scripts/find_python.sh")
exec "$python" -B "$root/scripts/validate.py" "$@"
