#!/usr/bin/env bash
# Sets up, builds everything into build/release and runs all default tests there, or with --unit what tests libraries in
# process, in a minute or two; further arguments go to ctest (`scripts/test.sh -R sim:`). With --sanitize address|thread it
# builds, into build/asan or build/tsan, the tests of what handles foreign bytes and threads, and runs them; with folders
# behind that (`--sanitize address transport`) those folders' unit tests alone. The exit status is ctest's.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

if [[ ${1:-} == --sanitize ]]; then
  kind=${2:-}
  case $kind in
    address) preset=asan ;;
    thread) preset=tsan ;;
    *)
      echo "test: --sanitize takes address or thread, got '$kind'" >&2
      exit 2
      ;;
  esac
  shift 2
  folders=()
  while [[ ${1:-} == [a-z]* ]]; do
    folders+=("$1")
    shift
  done
  if ((${#folders[@]})); then
    targets=("${folders[@]/#/test_}")
    set -- -L unit "$@"
  else
    folders=(io requests transport job runtime replay replay_matrix)
    targets=("${folders[@]/#/test_}" hipress-exec)
  fi
  scripts/setup.sh --no-launch
  # A kernel may lay out memory as a sanitizer's shadow does not allow.
  probe=$(mktemp -d)
  trap 'rm -rf "$probe"' EXIT
  if ! { echo 'int main() {}' | "${CXX:-c++}" -x c++ - "-fsanitize=$kind" -o "$probe/program" && "$probe/program"; }; then
    echo "test: programs with the $kind sanitizer do not run here: skipped" >&2
    exit 0
  fi
  echo "test: building the sanitized tests of ${folders[*]} in build/$preset" >&2
  cmake --preset "$preset" --log-level=WARNING >&2
  cmake --build --preset "$preset" --parallel "$(nproc)" --target "${targets[@]}" >&2
  status=0
  ctest --preset "$preset" -j2 -R "^($(IFS='|'; echo "${folders[*]}")): " "$@" || status=$?
  exit "$status"
fi

preset=release
if [[ ${1:-} == --unit ]]; then
  preset=unit
  shift
fi
scripts/build.sh "$preset"
echo "test: running the tests of build/release" >&2
exec ctest --preset "$preset" -j2 "$@"
