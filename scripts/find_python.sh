#!/usr/bin/env bash
# Prints the path of a python3, if possible one that has matplotlib. Debian's own is tried first: another python3 earlier on the
# PATH often lacks Debian's packages. Exit status 1 if there is no python3 at all.
set -euo pipefail

candidates=(/usr/bin/python3 "$(command -v python3 || true)")
for python in "${candidates[@]}"; do
  if [[ -x $python ]] && "$python" -c 'import matplotlib' 2>/dev/null; then
    echo "$python"
    exit 0
  fi
done
for python in "${candidates[@]}"; do
  if [[ -x $python ]]; then
    echo "$python"
    exit 0
  fi
done
exit 1
