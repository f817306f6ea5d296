#!/usr/bin/env bash
# Builds the documentation.
#   scripts/docs.sh [--tools FOLDER]          the site, in build/docs/site; a dead link is an error
#   scripts/docs.sh --serve                   serves it on http://127.0.0.1:8000, with search
#   scripts/docs.sh --man [--tools FOLDER]    man pages and completions for bash, zsh and fish, in build/docs/share
# Reference pages are written from the tools in build/release/bin, or in FOLDER. MkDocs comes from PyPI into build/docs-venv, in the
# versions of docs/requirements.txt. If PyPI cannot be reached, the script prints `skipped: …` and exits with 0.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

tools=build/release/bin
what=site
while (($#)); do
  case $1 in
    --tools) tools=${2:?"docs: --tools needs a folder"}; shift 2 ;;
    --man) what=man; shift ;;
    --serve) what=serve; shift ;;
    *) echo "docs: unknown argument '$1'; known: --tools FOLDER, --man, --serve" >&2; exit 2 ;;
  esac
done
python=$(scripts/find_python.sh) || { echo "docs: no python3: scripts/setup.sh installs it" >&2; exit 1; }

if [[ $what == man ]]; then
  exec "$python" -B scripts/write_reference.py man build/docs/share --tools "$tools"
fi
venv=build/docs-venv
if ! cmp -s docs/requirements.txt "$venv/requirements.txt"; then
  rm -rf "$venv"
  if ! "$python" -m venv "$venv" >&2; then
    echo "skipped: $python makes no virtual environment (Debian: apt-get install python3-venv)"
    exit 0
  fi
  if ! said=$("$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r docs/requirements.txt 2>&1); then
    echo "$said" >&2
    if grep -qE 'from versions: none|Retrying|Connection' <<<"$said"; then
      echo "skipped: PyPI, from which MkDocs comes, cannot be reached"
      exit 0
    fi
    echo "docs: docs/requirements.txt does not fit this python3, see above" >&2
    exit 1
  fi
  cp docs/requirements.txt "$venv/requirements.txt"
fi
"$python" -B scripts/write_reference.py site build/docs/pages --tools "$tools"
if [[ $what == serve ]]; then exec "$venv/bin/mkdocs" serve --strict; fi
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --strict --clean >&2
echo "docs: build/docs/site/index.html"
